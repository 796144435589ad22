/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

const (
	// upTimeout is for a machine that has to build everything first.
	upTimeout   = 40 * time.Minute
	downTimeout = 2 * time.Minute
	// pollInterval is the operator's in a sandbox that the demo brings up: nobody wants to
	// look at a demo that waits for numbers.
	pollInterval = time.Second
)

// box is the sandbox that the demo plays in.
type box struct {
	root string
	// ours says that the demo brought it up.
	ours bool
}

// endpoints are where the sandbox can be reached.
type endpoints struct{ kubeconfig, amqpURL, kubectl string }

func (b *box) file(name string) string { return filepath.Join(b.root, "bin", "sandbox", name) }

// up brings up what of the sandbox is not running.
func (b *box) up(ctx context.Context) error {
	s, err := b.state()
	if err != nil {
		return err
	}
	b.ours = !s.anyAlive(ctx)
	if s.allAlive(ctx) {
		return nil // with the options that it was brought up with
	}
	ctx, cancel := context.WithTimeout(ctx, upTimeout)
	defer cancel()
	env := os.Environ()
	if b.ours && os.Getenv("SANDBOX_POLL_INTERVAL") == "" {
		env = append(env, "SANDBOX_POLL_INTERVAL="+pollInterval.String())
	}
	return b.command(ctx, env, "up")
}

// down ends what up brought up, also when ctx has ended.
func (b *box) down(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), downTimeout)
	defer cancel()
	return b.command(ctx, os.Environ(), "down")
}

func (b *box) command(ctx context.Context, env []string, verb string) error {
	cmd := exec.CommandContext(ctx, "go", "run", "./hack/cmd/sandbox", verb)
	cmd.Dir, cmd.Env = b.root, env
	cmd.Stdout, cmd.Stderr = lossy{os.Stderr}, lossy{os.Stderr}
	// A group of its own: Ctrl-C reaches the demo alone, and what it passes on reaches the
	// sandbox's command too, of which `go run` is the parent.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = time.Minute
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("bring the sandbox %s: %w", verb, err)
	}
	return nil
}

// lossy drops what can't be written: the end of whoever read it must not end the command
// that takes the sandbox down.
type lossy struct{ w io.Writer }

func (l lossy) Write(p []byte) (int, error) {
	_, _ = l.w.Write(p)
	return len(p), nil
}

// endpoints reads bin/sandbox/env as a shell does.
func (b *box) endpoints(ctx context.Context) (endpoints, error) {
	const script = `. "$0" && printf '%s\n' "$KUBECONFIG" "$AMQP_URL" && command -v kubectl`
	out, err := exec.CommandContext(ctx, "sh", "-c", script, b.file("env")).Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || len(lines) != 3 {
		return endpoints{}, fmt.Errorf("read %s: it must set KUBECONFIG and AMQP_URL, and kubectl must be in PATH (%w)", b.file("env"), err)
	}
	return endpoints{kubeconfig: lines[0], amqpURL: lines[1], kubectl: lines[2]}, nil
}

// boxState is the part of bin/sandbox/state.json that tells whether the sandbox is up.
type boxState struct {
	Cluster   string               `json:"cluster"`
	Etcd      boxService           `json:"etcd"`
	APIServer boxService           `json:"apiServer"`
	Operator  boxService           `json:"operator"`
	Broker    *sandbox.BrokerState `json:"broker"`
}

type boxService struct {
	Process sandbox.Process `json:"process"`
}

func (b *box) state() (boxState, error) {
	var s boxState
	data, err := os.ReadFile(b.file("state.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		return s, fmt.Errorf("read the sandbox's state: %w", err)
	}
	return s, nil
}

// outlived says whether the broker or the cluster goes on when the sandbox has ended.
func (b *box) outlived() bool {
	s, err := b.state()
	return err != nil || s.Cluster != "" || s.foreignBroker()
}

func (s boxState) anyAlive(ctx context.Context) bool {
	return s.Etcd.Process.Alive() || s.APIServer.Process.Alive() || s.Operator.Process.Alive() || s.brokerAlive(ctx)
}

func (s boxState) allAlive(ctx context.Context) bool {
	own := s.Etcd.Process.Alive() && s.APIServer.Process.Alive()
	return (own || s.Cluster != "") && s.Operator.Process.Alive() && (s.brokerAlive(ctx) || s.foreignBroker())
}

func (s boxState) foreignBroker() bool { return s.Broker != nil && s.Broker.External != nil }

// brokerAlive says whether a broker runs that the sandbox has started.
func (s boxState) brokerAlive(ctx context.Context) bool {
	if s.Broker == nil || s.foreignBroker() {
		return false
	}
	broker, err := sandbox.AttachBroker(func(string, ...any) {}, *s.Broker)
	return err == nil && broker.Alive(ctx)
}
