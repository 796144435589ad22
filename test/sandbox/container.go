/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	kindContainer = "container"
	ownerLabel    = "io.rabbitmq.retry-operator.sandbox.owner"
)

// container is a broker that runs in a container of its own.
type container struct {
	engine, name string
	node         Node
}

// containerEngine returns docker or podman, whichever answers, or nothing.
func containerEngine(ctx context.Context) string {
	for _, engine := range []string{"docker", "podman"} {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := exec.CommandContext(ctx, engine, "info").Run()
		cancel()
		if err == nil {
			return engine
		}
	}
	return ""
}

func createContainer(ctx context.Context, log Log, engine, version string, o owner) (runner, error) {
	if err := removeStaleContainers(ctx, log, engine); err != nil {
		return nil, err
	}
	node, err := newNode(version)
	if err != nil {
		return nil, err
	}
	label, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("write down the owner: %w", err)
	}
	c := &container{engine: engine, name: "retry-sandbox-" + randomHex(4), node: node}
	cmd := exec.CommandContext(ctx, engine, c.createArgs(string(label))...)
	// By environment, so that the password is in no command line.
	cmd.Env = append(os.Environ(), "RABBITMQ_DEFAULT_USER="+node.Username, "RABBITMQ_DEFAULT_PASS="+node.Password)
	if err := runLong(ctx, log, "Fetching and creating the container "+c.name+" of "+c.image(), cmd); err != nil {
		return nil, errors.Join(fmt.Errorf("create the broker's container: %w", err), c.remove(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *container) image() string { return "rabbitmq:" + c.node.Version + "-management" }

func (c *container) createArgs(label string) []string {
	return []string{
		"create", "--name", c.name, "--hostname", "localhost",
		"--label", ownerLabel + "=" + label,
		"--publish", fmt.Sprintf("127.0.0.1:%d:5672", c.node.AMQPPort),
		"--publish", fmt.Sprintf("127.0.0.1:%d:15672", c.node.ManagementPort),
		"--env", "RABBITMQ_DEFAULT_USER", "--env", "RABBITMQ_DEFAULT_PASS",
		c.image(),
		// Before the broker's start, so that no later step can fail on a broker half up.
		"sh", "-c", "rabbitmq-plugins enable --offline " + extraPlugins + " && exec docker-entrypoint.sh rabbitmq-server",
	}
}

const extraPlugins = "rabbitmq_random_exchange rabbitmq_consistent_hash_exchange"

func attachContainer(s BrokerState) (runner, error) {
	engine, name, ok := strings.Cut(s.Path, "/")
	if !ok {
		return nil, fmt.Errorf("take over a broker: %q names no container", s.Path)
	}
	return &container{engine: engine, name: name, node: s.Node}, nil
}

func removeStaleContainers(ctx context.Context, log Log, engine string) error {
	out, err := exec.CommandContext(ctx, engine, "ps", "--all", "--filter", "label="+ownerLabel,
		"--format", "{{.Names}} {{.Label \""+ownerLabel+"\"}}").Output()
	if err != nil {
		return fmt.Errorf("list leftover containers: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		name, label, _ := strings.Cut(strings.TrimSpace(line), " ")
		var o owner
		if json.Unmarshal([]byte(label), &o) != nil || !o.gone() {
			continue
		}
		log("Removing the leftover broker %s", name)
		if err := (&container{engine: engine, name: name}).remove(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (c *container) run(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, c.engine, args...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("run %s %s: %w: %s", c.engine, args[0], err, tail(string(out), 20))
	}
	return string(out), nil
}

func (c *container) start(ctx context.Context) error {
	_, err := c.run(ctx, "start", c.name)
	return err
}

func (c *container) shutdown(ctx context.Context) error {
	_, err := c.run(ctx, "stop", "--time", "60", c.name)
	return err
}

func (c *container) kill(ctx context.Context) error {
	if !c.alive(ctx) {
		return nil
	}
	_, err := c.run(ctx, "kill", c.name)
	return err
}

func (c *container) remove(ctx context.Context) error {
	out, err := c.run(ctx, "rm", "--force", "--volumes", c.name)
	if err != nil && strings.Contains(strings.ToLower(out), "no such container") {
		return nil
	}
	return err
}

func (c *container) alive(ctx context.Context) bool {
	out, err := c.run(ctx, "inspect", "--format", "{{.State.Running}}", c.name)
	return err == nil && strings.TrimSpace(out) == "true"
}

func (c *container) ctl(ctx context.Context, args ...string) (string, error) {
	return c.run(ctx, append([]string{"exec", c.name, "rabbitmqctl"}, args...)...)
}

func (c *container) logTail(ctx context.Context) string {
	out, _ := c.run(ctx, "logs", "--tail", "30", c.name)
	return out
}

func (c *container) state() BrokerState {
	return BrokerState{Kind: kindContainer, Path: c.engine + "/" + c.name, Node: c.node}
}
