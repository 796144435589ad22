/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package controllers

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/broker"
)

// BrokerConnectionReconciler says whether the operator can work with a broker.
type BrokerConnectionReconciler struct {
	client.Client
	Connections  *Connections
	PollInterval time.Duration
}

// Reconcile asks the broker who it is and writes the answer into the status.
func (r *BrokerConnectionReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	object := &v1alpha1.BrokerConnection{}
	if err := r.Get(ctx, req.NamespacedName, object); err != nil {
		if apierrors.IsNotFound(err) {
			r.Connections.forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !object.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	next := quietIntervals * r.PollInterval
	about, err := r.check(ctx, req.NamespacedName)
	var f *failure
	if err != nil {
		if f = failureOf(err); f == nil {
			return ctrl.Result{}, err
		}
		next = r.PollInterval
	}
	return ctrl.Result{RequeueAfter: next}, r.writeStatus(ctx, object, about, f)
}

// check tries the management API and, where one is given, the AMQP address.
func (r *BrokerConnectionReconciler) check(ctx context.Context, key types.NamespacedName) (broker.About, error) {
	conn, err := r.Connections.Get(ctx, key)
	if err != nil {
		return broker.About{}, err
	}
	about, err := conn.Client.About(ctx)
	if err != nil {
		return broker.About{}, err
	}
	if !supported(about.Version) {
		return about, unsupported(about.Version)
	}
	spec := conn.Object.Spec
	if spec.AMQPURL == "" {
		return about, nil
	}
	if err := broker.CheckAMQP(ctx, spec.AMQPURL, conn.Username, conn.Password, spec.EffectiveDefaultVhost()); err != nil {
		return about, &failure{reason: v1alpha1.ReasonAMQPUnreachable, message: err.Error()}
	}
	return about, nil
}

func (r *BrokerConnectionReconciler) writeStatus(ctx context.Context, object *v1alpha1.BrokerConnection, about broker.About, f *failure) error {
	before := object.DeepCopy()
	object.Status.ObservedGeneration = object.Generation
	ready := condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonConnected, "The broker answers, and the user may log in")
	if f != nil {
		ready = condition(v1alpha1.ConditionReady, metav1.ConditionFalse, f.reason, f.message)
	}
	ready.ObservedGeneration = object.Generation
	changed := meta.SetStatusCondition(&object.Status.Conditions, ready)
	if about.Version != "" {
		changed = changed || about.Version != before.Status.Version || about.ClusterName != before.Status.ClusterName
		object.Status.Version, object.Status.ClusterName = about.Version, about.ClusterName
		object.Status.LastObservedTime = &metav1.Time{Time: time.Now().Truncate(time.Second)}
	}
	if !changed && before.Status.ObservedGeneration == object.Generation {
		return nil
	}
	if err := r.Status().Patch(ctx, object, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	return nil
}

// SetupWithManager watches connections and their Secrets.
func (r *BrokerConnectionReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.BrokerConnection{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
			return requestsFor(connectionsOfSecret(ctx, r.Client, o), func(c v1alpha1.BrokerConnection) types.NamespacedName {
				return client.ObjectKeyFromObject(&c)
			})
		})).
		Complete(r)
}
