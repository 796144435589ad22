/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package controllers

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/broker"
)

// Options are what an installation can choose.
type Options struct {
	// Installation defaults to the uid of the namespace kube-system.
	Installation string
	PollInterval time.Duration
	ReleaseAfter time.Duration
	Concurrency  int
}

// Setup adds all controllers to the manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if o.Installation == "" {
		uid, err := clusterUID(ctx, mgr)
		if err != nil {
			return err
		}
		o.Installation = uid
	}
	if strings.Contains(o.Installation, "/") {
		return fmt.Errorf("the installation %q has a slash, which separates the parts of an owner; choose a name without", o.Installation)
	}
	if err := AddIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	observer := broker.NewObserver(o.PollInterval)
	connections := &Connections{Reader: mgr.GetClient(), Secrets: mgr.GetAPIReader(), Observer: observer}
	policies := &RetryPolicyReconciler{
		Client:       mgr.GetClient(),
		Recorder:     mgr.GetEventRecorder("rabbitmq-retry-operator"),
		Connections:  connections,
		Observer:     observer,
		Installation: o.Installation,
		PollInterval: o.PollInterval,
		ReleaseAfter: o.ReleaseAfter,
		Concurrency:  o.Concurrency,
	}
	if err := policies.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up the RetryPolicy controller: %w", err)
	}
	brokers := &BrokerConnectionReconciler{Client: mgr.GetClient(), Connections: connections, PollInterval: o.PollInterval}
	if err := brokers.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up the BrokerConnection controller: %w", err)
	}
	return nil
}

// clusterUID names the cluster by what outlives everything in it.
func clusterUID(ctx context.Context, mgr ctrl.Manager) (string, error) {
	namespace := &corev1.Namespace{}
	if err := mgr.GetAPIReader().Get(ctx, types.NamespacedName{Name: "kube-system"}, namespace); err != nil {
		return "", fmt.Errorf("read the uid of namespace kube-system, or set --installation: %w", err)
	}
	return string(namespace.UID), nil
}
