/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

// Command demo shows the operator at work: it brings up the sandbox, applies
// config/samples, publishes messages, consumes them and fails on most, shows how they
// climb the ladder, and checks what it shows. It exits with 0 if every check passed.
//
// A sandbox that is up already is used and left up. One that the demo brings up is ended
// again, unless -keep or DEMO_KEEP=1 is given.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

var errChecksFailed = errors.New("not every check passed")

func main() {
	keep := flag.Bool("keep", os.Getenv("DEMO_KEEP") == "1", "leave the sandbox up at the end")
	flag.Parse()
	// SIGPIPE too: with `make demo | head` there is nobody left to show anything to, but
	// still a sandbox to end.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	if err := run(ctx, *keep); err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, keep bool) (err error) {
	root, err := sandbox.RepoRoot()
	if err != nil {
		return err
	}
	b := &box{root: root}
	defer func() {
		if b.ours && !keep {
			err = errors.Join(err, b.down(ctx))
		}
	}()
	if err := b.up(ctx); err != nil {
		return err
	}
	e, err := b.endpoints(ctx)
	if err != nil {
		return err
	}
	d := &demo{
		cluster: &cluster{root: root, kubectl: e.kubectl, kubeconfig: e.kubeconfig},
		screen:  newScreen(),
	}
	err = d.play(ctx, e.amqpURL)
	if b.ours && !keep && b.outlived() {
		err = errors.Join(err, d.tidy(ctx, e.amqpURL))
	}
	if b.ours && keep {
		d.screen.say("The sandbox stays up: `. bin/sandbox/env` lets kubectl find it, `make sandbox-down` ends it.")
	}
	return err
}

// newScreen draws in place on a terminal that can, and in plain lines elsewhere.
func newScreen() *screen {
	fd := int(os.Stdout.Fd())
	return &screen{
		out:  os.Stdout,
		live: term.IsTerminal(fd) && os.Getenv("TERM") != "dumb",
		width: func() int {
			width, _, err := term.GetSize(fd)
			if err != nil || width <= 0 {
				return 80
			}
			return width
		},
		now: time.Now,
	}
}
