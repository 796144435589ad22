/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

// Command sandbox runs the operator against a real API server and a real RabbitMQ on
// this machine: `up` brings up what is not running, `down` ends it, `status` tells.
// `prepare` only builds what `up` and the tests start.
//
// SANDBOX_RABBITMQ chooses the version (4.3 or 4.0), SANDBOX_POLL_INTERVAL the
// operator's --poll-interval. RABBITMQ_URL uses an existing broker,
// SANDBOX_USE_CLUSTER=1 with KUBECONFIG an existing cluster; those are never ended.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctrl.SetLogger(klog.NewKlogr()) // else controller-runtime complains that there is none
	if err := run(ctx, os.Args[1:]); err != nil {
		say("sandbox: %v", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	commands := map[string]func(*box, context.Context) error{
		"up": (*box).up, "down": (*box).down, "status": (*box).status, "prepare": (*box).prepare,
	}
	if len(args) != 1 || commands[args[0]] == nil {
		return fmt.Errorf("usage: sandbox up|down|status|prepare")
	}
	root, err := sandbox.RepoRoot()
	if err != nil {
		return err
	}
	// Outside of bin/sandbox, which `down` deletes.
	if err := os.MkdirAll(filepath.Join(root, "bin"), 0o755); err != nil {
		return fmt.Errorf("make bin: %w", err)
	}
	unlock, err := sandbox.Lock(ctx, say, filepath.Join(root, "bin", ".sandbox.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	b, err := openBox(root)
	if err != nil {
		return err
	}
	return commands[args[0]](b, ctx)
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
