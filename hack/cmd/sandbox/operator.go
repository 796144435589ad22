/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const stopTimeout = 30 * time.Second

// operator builds the operator and runs it. A running one is started again when its
// binary or its flags changed.
func (b *box) operator(ctx context.Context, kubeconfig string) error {
	binary := filepath.Join(b.root, "bin", "manager")
	say("Building the operator")
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/manager")
	build.Dir = b.root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the operator: %w\n%s", err, out)
	}
	sum, err := fileSum(binary)
	if err != nil {
		return err
	}
	s := &b.state.Operator
	if err := s.ports(2); err != nil {
		return err
	}
	args := operatorArgs(s.Ports)
	command := strings.Join(append([]string{sum, kubeconfig}, args...), " ")
	if s.Process.Alive() && s.Command == command {
		say("The operator is running")
		return b.waitOperator(ctx)
	}
	if s.Process.Alive() {
		say("The operator changed; ending the one that runs")
	}
	if err := s.Process.EndGroup(ctx, stopTimeout); err != nil {
		return fmt.Errorf("end the operator: %w", err)
	}
	say("Starting the operator")
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	s.Command = command
	if err := b.launch("manager", s, cmd); err != nil {
		return err
	}
	return b.waitOperator(ctx)
}

func operatorArgs(ports []int) []string {
	args := []string{
		fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", ports[0]),
		fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", ports[1]),
	}
	if interval := os.Getenv("SANDBOX_POLL_INTERVAL"); interval != "" {
		args = append(args, "--poll-interval="+interval)
	}
	return args
}

func (b *box) waitOperator(ctx context.Context) error {
	url := fmt.Sprintf("http://127.0.0.1:%d/readyz", b.state.Operator.Ports[1])
	return b.wait(ctx, "manager", &b.state.Operator, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = res.Body.Close() }()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("readyz: %s", res.Status)
		}
		return nil
	})
}

func fileSum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the operator's binary: %w", err)
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read the operator's binary: %w", err)
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}
