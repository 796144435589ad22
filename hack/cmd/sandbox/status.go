/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package main

import (
	"context"
	"fmt"

	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

// status prints one line per part.
func (b *box) status(ctx context.Context) error {
	if b.state.Cluster != "" {
		printPart("cluster", "existing, "+b.state.Cluster)
	} else {
		printPart("etcd", describe(b.state.Etcd))
		printPart("kube-apiserver", describe(b.state.APIServer))
	}
	printPart("rabbitmq", b.describeBroker(ctx))
	printPart("operator", describe(b.state.Operator))
	return nil
}

func printPart(name, text string) { fmt.Printf("%-15s %s\n", name, text) }

func describe(s service) string {
	switch {
	case s.Process.PID == 0:
		return "not started"
	case !s.Process.Alive():
		return "ended; `make sandbox` starts it again"
	default:
		return fmt.Sprintf("running, pid %d, ports %v", s.Process.PID, s.Ports)
	}
}

func (b *box) describeBroker(ctx context.Context) string {
	if b.state.Broker == nil {
		return "not started"
	}
	broker, err := sandbox.AttachBroker(say, *b.state.Broker)
	switch {
	case err != nil:
		return "gone; `make sandbox` starts a new one"
	case broker.External() && broker.Alive(ctx):
		return "existing, " + broker.ManagementURL
	case broker.External():
		return "existing, does not answer, " + broker.ManagementURL
	case !broker.Alive(ctx):
		return "ended; `make sandbox` starts it again"
	default:
		return fmt.Sprintf("running, version %s, %s, amqp %s", broker.Version, broker.ManagementURL, broker.AMQPAddress())
	}
}
