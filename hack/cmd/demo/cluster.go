/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
)

// The object of config/samples.
const (
	samples    = "config/samples"
	namespace  = "default"
	policyName = "orders"
)

// cluster runs kubectl, as a user would.
type cluster struct {
	root       string // where kubectl runs
	kubectl    string
	kubeconfig string
}

// runTimeout bounds every call of kubectl, which has no deadline of its own.
const runTimeout = 3 * time.Minute

// run returns what kubectl printed.
func (c *cluster) run(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.kubectl, args...)
	cmd.Dir = c.root
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return stdout.String(), fmt.Errorf("%s: %w\n%s", commandLine(args), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// commandLine writes a call of kubectl as it is typed.
func commandLine(args []string) string { return "kubectl " + strings.Join(args, " ") }

// policy reads the RetryPolicy.
func (c *cluster) policy(ctx context.Context) (*v1alpha1.RetryPolicy, error) {
	out, err := c.run(ctx, "-n", namespace, "get", "retrypolicy", policyName, "-o", "json")
	if err != nil {
		return nil, err
	}
	p := &v1alpha1.RetryPolicy{}
	if err := json.Unmarshal([]byte(out), p); err != nil {
		return nil, fmt.Errorf("read the RetryPolicy: %w", err)
	}
	return p, nil
}

// waitArgs make kubectl wait until the policy fulfils a condition.
func waitArgs(timeout time.Duration, condition string) []string {
	return []string{"-n", namespace, "wait", "--for=" + condition, "--timeout=" + timeout.String(), "retrypolicy/" + policyName}
}

// ladderOf is the ladder that a policy's status tells of.
func ladderOf(p *v1alpha1.RetryPolicy) ladder {
	l := ladder{Queue: p.Spec.Queue, ParkingLot: p.Status.Parked.QueueName, MaxAttempts: int(p.Spec.MaxAttempts)}
	for _, t := range p.Status.Tiers {
		l.Tiers = append(l.Tiers, tier{Queue: t.QueueName, Delay: t.Delay.Duration})
	}
	return l
}
