/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

// Command manager runs the operator.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/retry-operator/rabbitmq-retry-operator/controllers"
)

// version is set by the linker.
var version = "dev"

// options are the flags.
type options struct {
	metricsAddress string
	probeAddress   string
	leaderElection bool
	installation   string
	pollInterval   time.Duration
	releaseAfter   time.Duration
	concurrency    int
	zap            zap.Options
}

func parseFlags() options {
	var o options
	flag.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", "address of the metrics endpoint; 0 turns it off")
	flag.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	flag.BoolVar(&o.leaderElection, "leader-elect", false, "let one of several replicas work at a time")
	flag.StringVar(&o.installation, "installation", "",
		"name that tells this cluster's objects on a broker from another cluster's (default: the uid of the namespace kube-system)")
	flag.DurationVar(&o.pollInterval, "poll-interval", 15*time.Second, "how often each virtual host is observed")
	flag.DurationVar(&o.releaseAfter, "release-after", 5*time.Minute,
		"how long a deleted RetryPolicy waits for a broker that can't be reached before it goes and leaves its objects behind")
	flag.IntVar(&o.concurrency, "max-concurrent-reconciles", 4, "how many policies are reconciled at a time")
	o.zap.BindFlags(flag.CommandLine)
	flag.Parse()
	return o
}

func main() {
	o := parseFlags()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&o.zap)))
	if err := run(ctrl.SetupSignalHandler(), o); err != nil {
		ctrl.Log.Error(err, "Stopped")
		os.Exit(1)
	}
}

// minReleaseAfter is longer than it takes a broker to count what a new queue holds.
const minReleaseAfter = 15 * time.Second

func run(ctx context.Context, o options) error {
	if o.pollInterval < time.Second {
		return fmt.Errorf("--poll-interval is %s; give at least 1s", o.pollInterval)
	}
	if o.releaseAfter < minReleaseAfter {
		return fmt.Errorf("--release-after is %s; give at least %s, since a broker's counts come up to 10s late", o.releaseAfter, minReleaseAfter)
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the cluster: %w", err)
	}
	options, err := controllers.ManagerOptions()
	if err != nil {
		return err
	}
	options.Metrics = metricsserver.Options{BindAddress: o.metricsAddress}
	options.HealthProbeBindAddress = o.probeAddress
	options.LeaderElection = o.leaderElection
	options.LeaderElectionID = "rabbitmq-retry-operator"
	options.LeaderElectionReleaseOnCancel = true
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return fmt.Errorf("make the manager: %w", err)
	}
	if err := controllers.Setup(ctx, mgr, controllers.Options{
		Installation: o.installation,
		PollInterval: o.pollInterval,
		ReleaseAfter: o.releaseAfter,
		Concurrency:  o.concurrency,
	}); err != nil {
		return err
	}
	for name, add := range map[string]func(string, healthz.Checker) error{"healthz": mgr.AddHealthzCheck, "readyz": mgr.AddReadyzCheck} {
		if err := add(name, healthz.Ping); err != nil {
			return fmt.Errorf("add %s: %w", name, err)
		}
	}
	ctrl.Log.Info("Starting", "version", version, "pollInterval", o.pollInterval.String())
	return mgr.Start(ctx)
}
