/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package sandbox

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
)

// ErrUnsupported is returned by what cannot be done to a broker that the sandbox did
// not start.
var ErrUnsupported = errors.New("not supported on a broker that the sandbox did not start")

// Broker is a RabbitMQ node that answers on its management API and on AMQP.
type Broker struct {
	// Version is major.minor, as in "4.3".
	Version string
	// ManagementURL is the address of the management API, without credentials.
	ManagementURL string
	// Username and Password are those of an administrator.
	Username, Password string

	amqpAddress string
	log         Log
	runner      runner
}

// runner is where a broker runs: a chroot, a container, or out of reach.
type runner interface {
	// start MUST be a no-op on a running broker. It need not wait until it answers.
	start(ctx context.Context) error
	// alive MUST be false once the broker's process has ended.
	alive(ctx context.Context) bool
	// shutdown and kill MUST return after the end of the process and keep its data.
	shutdown(ctx context.Context) error
	kill(ctx context.Context) error
	// remove MUST end the broker and delete all it left. A second call is a no-op.
	remove(ctx context.Context) error
	// ctl runs rabbitmqctl and returns what it printed.
	ctl(ctx context.Context, args ...string) (string, error)
	// logTail returns the end of the broker's log.
	logTail(ctx context.Context) string
	// state is what another process needs to take over the broker.
	state() BrokerState
}

// BrokerState is a broker written down, for a process other than the one that
// started it. It holds the password.
type BrokerState struct {
	// Kind is chroot, container or external.
	Kind string `json:"kind"`
	// Path is the instance's folder, or the container's engine and name.
	Path string `json:"path,omitempty"`
	// Node is how the broker is reached.
	Node Node `json:"node"`
	// External has the addresses of a broker that the sandbox did not start.
	External *External `json:"external,omitempty"`
}

// Node is the identity of one RabbitMQ node. Nodes with the same cookie and the same
// epmd port can form a cluster.
type Node struct {
	Version        string `json:"version"`
	Name           string `json:"name"`
	Cookie         string `json:"cookie"`
	Username       string `json:"username"`
	Password       string `json:"password"`
	AMQPPort       int    `json:"amqpPort"`
	ManagementPort int    `json:"managementPort"`
	DistPort       int    `json:"distPort,omitempty"`
	EPMDPort       int    `json:"epmdPort,omitempty"`
}

func newNode(version string) (Node, error) {
	ports, err := FreePorts(4)
	if err != nil {
		return Node{}, err
	}
	return Node{
		Version:        version,
		Name:           "rabbit-" + randomHex(4) + "@localhost",
		Cookie:         randomHex(16),
		Username:       "admin",
		Password:       randomHex(16),
		AMQPPort:       ports[0],
		ManagementPort: ports[1],
		DistPort:       ports[2],
		EPMDPort:       ports[3],
	}, nil
}

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b)
}

// BrokerOption changes how StartBroker starts a broker.
type BrokerOption func(*brokerOptions)

type brokerOptions struct{ owner owner }

// OwnedByFile makes the broker outlive the calling process: it counts as left over,
// and is removed by a later StartBroker, once path no longer exists.
func OwnedByFile(path string) BrokerOption {
	return func(o *brokerOptions) { o.owner = owner{File: path} }
}

// StartBroker starts RabbitMQ of the given version ("4.0" or "4.3") and waits until
// it answers. The broker comes from RABBITMQ_URL where that is set (its version is
// then what it is), else from a container engine that runs, else, as root on Debian,
// from a tree of packages in the cache. Brokers whose owner is gone are removed first.
func StartBroker(ctx context.Context, log Log, version string, options ...BrokerOption) (*Broker, error) {
	o := brokerOptions{owner: thisProcess()}
	for _, option := range options {
		option(&o)
	}
	if raw := os.Getenv("RABBITMQ_URL"); raw != "" {
		external, err := findExternal(ctx, raw)
		if err != nil {
			return nil, err
		}
		return newBroker(log, external), nil
	}
	b, err := startNew(ctx, log, version, o.owner)
	if err != nil && ctx.Err() == nil {
		// Between its choice and its use a port can go to another program: once more, with others.
		log("RabbitMQ %s did not start, trying once more: %v", version, err)
		b, err = startNew(ctx, log, version, o.owner)
	}
	return b, err
}

func startNew(ctx context.Context, log Log, version string, o owner) (*Broker, error) {
	runner, err := createRunner(ctx, log, version, o)
	if err != nil {
		return nil, err
	}
	b := newBroker(log, runner)
	if err := b.Start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start RabbitMQ %s: %w", version, err), runner.remove(context.WithoutCancel(ctx)))
	}
	return b, nil
}

// CheckBroker returns an error that says what is missing when StartBroker has no
// chance on this machine. It costs next to nothing.
func CheckBroker(ctx context.Context) error {
	if os.Getenv("RABBITMQ_URL") != "" || containerEngine(ctx) != "" {
		return nil
	}
	if missing := missingForChroot(); len(missing) > 0 {
		return noBrokerError(missing)
	}
	return nil
}

func createRunner(ctx context.Context, log Log, version string, o owner) (runner, error) {
	if engine := containerEngine(ctx); engine != "" {
		return createContainer(ctx, log, engine, version, o)
	}
	if missing := missingForChroot(); len(missing) > 0 {
		return nil, noBrokerError(missing)
	}
	return createChroot(ctx, log, version, o)
}

// AttachBroker takes over a broker that another process started.
func AttachBroker(log Log, s BrokerState) (*Broker, error) {
	r, err := attachRunner(s)
	if err != nil {
		return nil, err
	}
	return newBroker(log, r), nil
}

func attachRunner(s BrokerState) (runner, error) {
	switch s.Kind {
	case kindChroot:
		return attachChroot(s)
	case kindContainer:
		return attachContainer(s)
	case kindExternal:
		if s.External != nil {
			return s.External, nil
		}
	}
	return nil, fmt.Errorf("take over a broker: unknown kind %q", s.Kind)
}

func newBroker(log Log, r runner) *Broker {
	b := &Broker{log: log, runner: r}
	s := r.state()
	b.Version, b.Username, b.Password = s.Node.Version, s.Node.Username, s.Node.Password
	b.ManagementURL = fmt.Sprintf("http://127.0.0.1:%d", s.Node.ManagementPort)
	b.amqpAddress = fmt.Sprintf("127.0.0.1:%d", s.Node.AMQPPort)
	if s.External != nil {
		b.ManagementURL, b.amqpAddress = s.External.ManagementURL, s.External.AMQPAddress
	}
	return b
}

// State returns the broker written down. It holds the password.
func (b *Broker) State() BrokerState { return b.runner.state() }

// AMQPURL returns the AMQP address of a virtual host, with credentials.
func (b *Broker) AMQPURL(vhost string) string {
	user := url.UserPassword(b.Username, b.Password)
	return "amqp://" + user.String() + "@" + b.amqpAddress + "/" + url.PathEscape(vhost)
}

// AMQPAddress returns host:port of the AMQP listener.
func (b *Broker) AMQPAddress() string { return b.amqpAddress }

// LogFile returns the path of the broker's log, or nothing where it is no file here.
func (b *Broker) LogFile() string {
	if s := b.runner.state(); s.Kind == kindChroot {
		return filepath.Join(s.Path, "log", "broker.log")
	}
	return ""
}

// External reports whether the sandbox did not start the broker.
func (b *Broker) External() bool { return b.runner.state().Kind == kindExternal }

// Alive reports whether the broker's process runs.
func (b *Broker) Alive(ctx context.Context) bool { return b.runner.alive(ctx) }

// Start starts the broker again after Kill or Shutdown, with the same ports and data,
// and waits until it answers. On a running broker it only waits.
func (b *Broker) Start(ctx context.Context) error {
	if err := b.runner.start(ctx); err != nil {
		return err
	}
	return b.waitReady(ctx)
}

// Shutdown ends the broker as an operator would, and keeps its data.
func (b *Broker) Shutdown(ctx context.Context) error { return b.runner.shutdown(ctx) }

// Kill ends the broker as a power cut would, and keeps its data.
func (b *Broker) Kill() error { return b.runner.kill(context.Background()) }

// Stop ends the broker and deletes its data. It leaves a broker that the sandbox did
// not start as it is.
func (b *Broker) Stop() error { return b.runner.remove(context.Background()) }

// Rabbitmqctl runs rabbitmqctl against the broker and returns what it printed.
func (b *Broker) Rabbitmqctl(ctx context.Context, args ...string) (string, error) {
	return b.runner.ctl(ctx, args...)
}
