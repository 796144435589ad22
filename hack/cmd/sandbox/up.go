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
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

const defaultRabbitMQ = "4.3"

// prepare fills the cache for `up` and for the tests, which start both versions.
func (b *box) prepare(ctx context.Context) error {
	return sandbox.Prepare(ctx, say, "4.0", "4.3")
}

// up brings up, in the order of who needs whom, what is not running.
func (b *box) up(ctx context.Context) error {
	started := time.Now()
	if err := sandbox.CheckBroker(ctx); err != nil { // before minutes of building
		return err
	}
	if err := b.save(); err != nil {
		return err
	}
	assets, kubeconfig, err := b.cluster(ctx)
	if err != nil {
		return err
	}
	config, err := restConfig(kubeconfig)
	if err != nil {
		return err
	}
	broker, err := b.broker(ctx)
	if err != nil {
		return err
	}
	if err := b.applyObjects(ctx, config, broker); err != nil {
		return err
	}
	// Before the operator, so that there is a way to look around when it does not start.
	if err := b.writeEnv(assets, kubeconfig, broker); err != nil {
		return err
	}
	if err := b.operator(ctx, kubeconfig); err != nil {
		return err
	}
	say("The sandbox is up (%s). Next: . %s", time.Since(started).Round(100*time.Millisecond), b.relative("env"))
	return nil
}

func (b *box) relative(name string) string {
	if rel, err := filepath.Rel(b.root, b.path(name)); err == nil {
		return rel
	}
	return b.path(name)
}

// cluster returns the folder of the control plane's binaries (none for an existing
// cluster) and the kubeconfig.
func (b *box) cluster(ctx context.Context) (assets, kubeconfig string, err error) {
	existing := ""
	if os.Getenv("SANDBOX_USE_CLUSTER") != "" {
		if existing, err = filepath.Abs(os.Getenv("KUBECONFIG")); err != nil || os.Getenv("KUBECONFIG") == "" {
			return "", "", errors.New("SANDBOX_USE_CLUSTER is set, but KUBECONFIG does not name a file\n" + sandbox.ExistingHint)
		}
	}
	if b.state.Cluster != existing && (b.state.Operator.Process.PID != 0 || b.state.APIServer.Process.PID != 0) {
		return "", "", errors.New("the sandbox is up with another cluster; run `make sandbox-down` first")
	}
	b.state.Cluster = existing
	if existing != "" {
		say("Using the cluster of %s", existing)
		return "", existing, b.save()
	}
	assets, err = sandbox.Assets(ctx, say)
	if err != nil {
		return "", "", fmt.Errorf("%w\n%s", err, sandbox.ExistingHint)
	}
	return assets, b.path("kubeconfig"), b.controlPlane(ctx, assets)
}

// broker returns a broker that answers: the one that runs, that one started again, or
// a new one.
func (b *box) broker(ctx context.Context) (*sandbox.Broker, error) {
	version := os.Getenv("SANDBOX_RABBITMQ")
	if version == "" {
		version = defaultRabbitMQ
	}
	if b.state.Broker != nil {
		broker, err := b.brokerAgain(ctx, version)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return broker, err
		}
		say("The broker's data is gone; a new one takes its place") // the cache was emptied
	}
	if os.Getenv("RABBITMQ_URL") == "" {
		say("Starting RabbitMQ %s", version)
	}
	broker, err := sandbox.StartBroker(ctx, say, version, sandbox.OwnedByFile(b.path("state.json")))
	if err != nil {
		return nil, err
	}
	s := broker.State()
	b.state.Broker = &s
	say("RabbitMQ %s answers at %s", broker.Version, broker.ManagementURL)
	return broker, b.save()
}

func (b *box) brokerAgain(ctx context.Context, version string) (*sandbox.Broker, error) {
	broker, err := sandbox.AttachBroker(say, *b.state.Broker)
	if err != nil {
		return nil, err
	}
	if broker.External() != (os.Getenv("RABBITMQ_URL") != "") {
		return nil, errors.New("the sandbox is up with another broker; run `make sandbox-down` first")
	}
	if broker.External() { // its address or password may have changed
		if broker, err = sandbox.StartBroker(ctx, say, version); err != nil {
			return nil, err
		}
		s := broker.State()
		b.state.Broker = &s
		say("Using the broker at %s", broker.ManagementURL)
		return broker, b.save()
	}
	if broker.Version != version {
		return nil, fmt.Errorf("the sandbox is up with RabbitMQ %s; to change to %s, run `make sandbox-down` first", broker.Version, version)
	}
	if broker.Alive(ctx) {
		say("RabbitMQ %s is running at %s", broker.Version, broker.ManagementURL)
	} else {
		say("Starting RabbitMQ %s again", broker.Version)
	}
	return broker, broker.Start(ctx)
}

func restConfig(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig %s: %w", kubeconfig, err)
	}
	return config, nil
}
