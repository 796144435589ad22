/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

// Package e2e runs the operator against a real API server and real brokers, and counts
// messages.
package e2e

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
	"github.com/retry-operator/rabbitmq-retry-operator/controllers"
	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

const (
	// pollInterval is the shortest that the operator takes.
	pollInterval = time.Second
	// releaseAfter is how long a deleted policy waits for a broker that is away.
	releaseAfter = 20 * time.Second
	// parallel is how many tests run at a time.
	parallel = "8"
	// patience bounds every wait; it is no expectation about speed.
	patience = 90 * time.Second
)

// versions are the brokers under test, the newest last. Of a broker given by RABBITMQ_URL it
// is the one that the broker says it has.
var versions = []string{"4.0", "4.3"}

// newest is for tests that one broker is enough for.
func newest() string { return versions[len(versions)-1] }

// What all tests share.
var (
	// k8s acts as the cluster's administrator, asOperator as the operator's ServiceAccount.
	k8s        client.WithWatch
	asOperator client.Client
	brokers    = map[string]*sandbox.Broker{}
	logs       = &operatorLog{}
)

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait more than they work: run many at a time, whatever the machine has.
	if err := flag.Set("test.parallel", parallel); err != nil {
		panic(err)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	say := func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

	config, stopControlPlane, err := sandbox.StartEnvtest(ctx, say)
	if err != nil {
		say("start the control plane: %v", err)
		return 1
	}
	defer func() { _ = stopControlPlane() }()
	if err := startBrokers(ctx, say); err != nil {
		say("start the brokers: %v", err)
		return 1
	}
	defer stopBrokers(say)
	stopManager, err := startManager(ctx, config)
	if err != nil {
		say("start the operator: %v", err)
		return 1
	}
	defer stopManager()
	return m.Run()
}

func startBrokers(ctx context.Context, say func(string, ...any)) error {
	if os.Getenv("RABBITMQ_URL") != "" {
		given, err := sandbox.StartBroker(ctx, say, newest())
		if err != nil {
			return err
		}
		versions = []string{given.Version}
		brokers[given.Version] = given
		return nil
	}
	var group errgroup.Group
	var mu sync.Mutex
	for _, v := range versions {
		group.Go(func() error {
			b, err := sandbox.StartBroker(ctx, say, v)
			if err != nil {
				return fmt.Errorf("RabbitMQ %s: %w", v, err)
			}
			mu.Lock()
			defer mu.Unlock()
			brokers[v] = b
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		stopBrokers(say)
		return err
	}
	return nil
}

func stopBrokers(say func(string, ...any)) {
	for v, b := range brokers {
		if err := b.Stop(); err != nil {
			say("stop RabbitMQ %s: %v", v, err)
		}
	}
}

// startManager runs the operator in this process as cmd/manager does, with the rights of its
// own ServiceAccount and no more.
func startManager(ctx context.Context, config *rest.Config) (func(), error) {
	ctrl.SetLogger(zap.New(zap.UseDevMode(true), zap.WriteTo(io.MultiWriter(logs, testLog()))))
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	var err error
	if k8s, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	user, err := grantRights(ctx)
	if err != nil {
		return nil, fmt.Errorf("apply config/rbac: %w", err)
	}
	config = rest.CopyConfig(config)
	config.Impersonate = user
	config.QPS, config.Burst = 200, 400
	if asOperator, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		Client:  client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	if err := controllers.Setup(ctx, mgr, controllers.Options{PollInterval: pollInterval, ReleaseAfter: releaseAfter, Concurrency: 4}); err != nil {
		cancel()
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := mgr.Start(ctx); err != nil {
			fmt.Fprintf(os.Stderr, "the operator stopped: %v\n", err)
		}
	}()
	return func() { cancel(); <-done }, nil
}

// testLog shows the operator's log when E2E_LOG is set.
func testLog() io.Writer {
	if os.Getenv("E2E_LOG") != "" {
		return os.Stderr
	}
	return io.Discard
}

// operatorLog keeps all that the operator logs, to be searched for secrets.
type operatorLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *operatorLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *operatorLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
