/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package sandbox

import (
	"context"
	"os"

	"golang.org/x/sync/errgroup"
)

// Prepare builds what the other functions would build on their first call: the control
// plane and what brokers of the given versions run from. A test has too little time for
// that, so `make test` calls it first.
func Prepare(ctx context.Context, log Log, versions ...string) error {
	if err := CheckBroker(ctx); err != nil {
		return err
	}
	// A build waits for the processor, an installation for the network: side by side.
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		_, err := Assets(ctx, log)
		return err
	})
	group.Go(func() error { return prepareBrokers(ctx, log, versions) })
	return group.Wait()
}

func prepareBrokers(ctx context.Context, log Log, versions []string) error {
	if os.Getenv("RABBITMQ_URL") != "" || containerEngine(ctx) != "" {
		return nil
	}
	for _, version := range versions {
		if _, err := debianTree(ctx, log, version); err != nil {
			return err
		}
	}
	return nil
}
