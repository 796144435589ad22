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

const tidyTimeout = time.Minute

// made is what a demo has made in a broker or a cluster that outlives the sandbox. Only
// that is deleted again.
type made struct {
	policy   bool
	queues   []string
	exchange bool
}

// noteMissing notes what the demo is about to make.
func (d *demo) noteMissing() error {
	for _, queue := range []string{targetQueue, parkingLot} {
		there, err := d.bus.exists(func(ch channel) error {
			_, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
			return err
		})
		if err != nil {
			return err
		}
		if !there {
			d.made.queues = append(d.made.queues, queue)
		}
	}
	there, err := d.bus.exists(func(ch channel) error {
		return ch.ExchangeDeclarePassive(topicShop, "topic", true, false, false, false, nil)
	})
	d.made.exchange = !there
	return err
}

// tidy deletes what the demo made, while the operator still runs: without it nothing
// would take its objects off the broker, or let the RetryPolicy go.
func (d *demo) tidy(ctx context.Context, amqpURL string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTimeout)
	defer cancel()
	var problems []error
	if d.made.policy {
		out, err := d.cluster.run(ctx, "delete", "-k", samples, "--timeout="+(tidyTimeout/2).String())
		d.screen.say("%s", strings.TrimSpace(out))
		problems = append(problems, err)
	}
	bus, err := dial(ctx, amqpURL) // the demo's own may have ended with its context
	if err != nil {
		return errors.Join(append(problems, err)...)
	}
	defer bus.close()
	problems = append(problems, bus.remove(d.made))
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("delete what the demo has made: %w", err)
	}
	d.screen.say("Deleted what the demo had made on the broker and in the cluster, which go on.")
	return nil
}
