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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/broker"
)

// recorderName is the reporting controller of events.
const recorderName = "rabbitmq-retry-operator"

// Options are what an installation can choose.
type Options struct {
	// Installation defaults to the uid of the namespace kube-system.
	Installation string
	PollInterval time.Duration
	ReleaseAfter time.Duration
	Concurrency  int
}

// ManagerOptions are the manager's options that the controllers rely on. Secrets are
// cached as metadata alone: only the metadata is watched, and data is read from the API
// server when a version of a Secret is new.
func ManagerOptions() (ctrl.Options, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return ctrl.Options{}, fmt.Errorf("register the kinds of Kubernetes: %w", err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return ctrl.Options{}, fmt.Errorf("register the operator's kinds: %w", err)
	}
	return ctrl.Options{Scheme: scheme, Cache: cache.Options{DefaultTransform: cache.TransformStripManagedFields()}}, nil
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
		Recorder:     mgr.GetEventRecorder(recorderName),
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
	brokers := &BrokerConnectionReconciler{Client: mgr.GetClient(), Connections: connections, PollInterval: o.PollInterval, Concurrency: o.Concurrency,
		Recorder: mgr.GetEventRecorder(recorderName)}
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
