/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// deleteTimeout is for an operator that takes a queue down only when it has seen it empty
// twice, some of the broker's statistics intervals apart.
const (
	deleteTimeout = 2 * time.Minute
	tidyTimeout   = deleteTimeout + 30*time.Second
)

// made is what a demo has made in a broker or a cluster that outlives the sandbox. Only
// that is deleted again.
type made struct {
	policy            bool
	queues, exchanges []string
}

// noteMissing notes what the demo is about to make on the broker.
func (d *demo) noteMissing() error {
	for _, queue := range []string{targetQueue, parkingLot} {
		there, err := d.bus.hasQueue(queue)
		if err != nil {
			return err
		}
		if !there {
			d.made.queues = append(d.made.queues, queue)
		}
	}
	there, err := d.bus.hasExchange(topicShop)
	if err == nil && !there {
		d.made.exchanges = []string{topicShop}
	}
	return err
}

// tidy deletes what the demo made, while the operator still runs: without it nothing
// would take its objects off the broker, or let the RetryPolicy go.
func (d *demo) tidy(ctx context.Context, amqpURL string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTimeout)
	defer cancel()
	var problems []error
	if d.made.policy {
		d.screen.say("\nDeleting the RetryPolicy. The operator first makes sure that the tiers are empty: up to a minute.")
		out, err := d.cluster.run(ctx, "delete", "-k", samples, "--timeout="+deleteTimeout.String())
		d.screen.say("%s", strings.TrimSpace(out))
		problems = append(problems, err)
	}
	bus, err := dial(ctx, amqpURL) // the demo's own may have ended with its context
	if err != nil {
		return errors.Join(append(problems, err)...)
	}
	defer bus.close()
	problems = append(problems, bus.remove(d.made.queues, d.made.exchanges))
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("delete what the demo has made: %w", err)
	}
	d.screen.say("Deleted what the demo had made on the broker and in the cluster, which go on.")
	return nil
}
