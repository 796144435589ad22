/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// progressEvery is how often a long step says that it is still running.
const progressEvery = 15 * time.Second

func elapsed(since time.Time) time.Duration { return time.Since(since).Round(time.Second) }

// runLong runs a command, says title and then how long it has been running. The error
// carries the end of the command's output.
func runLong(ctx context.Context, log Log, title string, cmd *exec.Cmd) error {
	log("%s ...", title)
	started := time.Now()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	done := make(chan error, 1)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("run %s: %w", cmd.Args[0], err)
	}
	go func() { done <- cmd.Wait() }()
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			log("%s ... still running after %s", title, elapsed(started))
		case err := <-done:
			if ctx.Err() != nil {
				return fmt.Errorf("run %s: %w", cmd.Args[0], ctx.Err())
			}
			if err != nil {
				return fmt.Errorf("run %s: %w; its output ends with:\n%s", cmd.Args[0], err, tail(out.String(), 20))
			}
			log("%s: done after %s", title, elapsed(started))
			return nil
		}
	}
}

// Poll calls check until it is done or fails, or ctx ends.
func Poll(ctx context.Context, every time.Duration, check func() (bool, error)) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		done, err := check()
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
