/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

// down ends what up started, the last first, and deletes what it wrote.
func (b *box) down(ctx context.Context) error {
	if _, err := os.Stat(b.dir); errors.Is(err, fs.ErrNotExist) {
		say("The sandbox is not up")
		return nil
	}
	err := errors.Join(
		end(ctx, "the operator", b.state.Operator),
		b.endBroker(),
		end(ctx, "kube-apiserver", b.state.APIServer),
		end(ctx, "etcd", b.state.Etcd),
	)
	if err != nil {
		return err // and keep the state, so that the next down can go on
	}
	if b.state.Cluster != "" {
		say("Left the cluster of %s as it is, with the CRDs, Secret main-credentials and BrokerConnection main", b.state.Cluster)
	}
	if err := os.RemoveAll(b.dir); err != nil {
		return fmt.Errorf("remove the sandbox's folder: %w", err)
	}
	say("Removed %s; what was built stays in the cache", b.dir)
	return nil
}

func end(ctx context.Context, name string, s service) error {
	if !s.Process.Alive() {
		return nil
	}
	if err := s.Process.EndGroup(ctx, stopTimeout); err != nil {
		return fmt.Errorf("end %s: %w", name, err)
	}
	say("Ended %s (pid %d)", name, s.Process.PID)
	return nil
}

func (b *box) endBroker() error {
	if b.state.Broker == nil {
		return nil
	}
	broker, err := sandbox.AttachBroker(say, *b.state.Broker)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // its folder is gone, as after a down that was cut short
	}
	if err != nil {
		return err
	}
	if broker.External() {
		say("Left the broker at %s as it is", broker.ManagementURL)
		return nil
	}
	if err := broker.Stop(); err != nil {
		return err
	}
	say("Ended RabbitMQ %s and removed its data", broker.Version)
	return nil
}
