/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

// box is the sandbox of one clone: its folder and what is written there.
type box struct {
	root, dir string
	state     state
}

// state is what a later command needs to know. It holds the broker's password.
type state struct {
	// Cluster is the kubeconfig of an existing cluster; empty for one of our own.
	Cluster   string               `json:"cluster,omitempty"`
	Etcd      service              `json:"etcd"`
	APIServer service              `json:"apiServer"`
	Broker    *sandbox.BrokerState `json:"broker,omitempty"`
	Operator  service              `json:"operator"`
}

// service is a program that runs in the background. It keeps its ports when it is
// started again.
type service struct {
	Process sandbox.Process `json:"process"`
	Ports   []int           `json:"ports,omitempty"`
	// Command tells whether the program that runs is the one that should.
	Command string `json:"command,omitempty"`
}

func openBox(root string) (*box, error) {
	b := &box{root: root, dir: filepath.Join(root, "bin", "sandbox")}
	data, err := os.ReadFile(b.path("state.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the sandbox's state: %w", err)
	}
	if err := json.Unmarshal(data, &b.state); err != nil {
		return nil, fmt.Errorf("read the sandbox's state in %s: %w", b.path("state.json"), err)
	}
	return b, nil
}

func (b *box) path(name string) string { return filepath.Join(b.dir, name) }

func (b *box) save() error {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return fmt.Errorf("make the sandbox's folder: %w", err)
	}
	if err := sandbox.WriteJSON(b.path("state.json"), b.state); err != nil {
		return fmt.Errorf("write the sandbox's state: %w", err)
	}
	return nil
}

// launch starts cmd in the background, with its output in <name>.log, and notes it
// down at once: what is not noted down is never ended.
func (b *box) launch(name string, s *service, cmd *exec.Cmd) error {
	out, err := os.OpenFile(b.path(name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", name, err)
	}
	defer func() { _ = out.Close() }()
	cmd.Stdout, cmd.Stderr = out, out
	if s.Process, err = sandbox.StartDetached(cmd); err != nil {
		return err
	}
	return b.save()
}

// ports gives a service its ports, the same ones each time.
func (s *service) ports(n int) error {
	if len(s.Ports) == n {
		return nil
	}
	ports, err := sandbox.FreePorts(n)
	s.Ports = ports
	return err
}
