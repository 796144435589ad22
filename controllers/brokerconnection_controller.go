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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
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
	Recorder     events.EventRecorder
	PollInterval time.Duration
	Concurrency  int
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
	about, err := r.check(ctx, req.NamespacedName)
	var f *failure
	if err != nil {
		if f = failureOf(err); f == nil {
			return ctrl.Result{}, err
		}
	}
	news := f != nil && !r.known(object, f)
	if err := r.writeStatus(ctx, object, about, f); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: r.next(news)}, nil
}

// next backs off from a broker that goes on failing, and from one that is well: a first
// failure is looked at again after one interval, all else after four, with jitter.
func (r *BrokerConnectionReconciler) next(news bool) time.Duration {
	if news {
		return r.PollInterval
	}
	return wait.Jitter(quietIntervals*r.PollInterval, 0.2)
}

// known reports whether the status says so already.
func (r *BrokerConnectionReconciler) known(object *v1alpha1.BrokerConnection, f *failure) bool {
	c := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionReady)
	return c != nil && c.Reason == f.reason
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
	return about, broker.CheckAMQP(ctx, spec.AMQPURL, conn.Username, conn.Password, spec.DefaultVhost)
}

func (r *BrokerConnectionReconciler) writeStatus(ctx context.Context, object *v1alpha1.BrokerConnection, about broker.About, f *failure) error {
	before := object.DeepCopy()
	object.Status.ObservedGeneration = object.Generation
	ready := condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonConnected, "The broker answers, and the user may log in")
	if f != nil {
		ready = condition(v1alpha1.ConditionReady, f.status(), f.reason, f.message)
	}
	ready.ObservedGeneration = object.Generation
	changed := meta.SetStatusCondition(&object.Status.Conditions, ready)
	if about.Version != "" {
		changed = changed || about.Version != before.Status.Version || about.ClusterName != before.Status.ClusterName
		object.Status.Version, object.Status.ClusterName = about.Version, about.ClusterName
		object.Status.LastObservedTime = &metav1.Time{Time: time.Now().Truncate(time.Second)}
	}
	last := before.Status.LastObservedTime
	quiet := last != nil && about.Version != "" && object.Status.LastObservedTime.Sub(last.Time) < quietIntervals*r.PollInterval
	if !changed && before.Status.ObservedGeneration == object.Generation && (quiet || about.Version == "") {
		return nil
	}
	if err := r.Status().Patch(ctx, object, client.MergeFrom(before)); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("write the status: %w", err)
	}
	tellReady(ctx, r.Recorder, object, before.Status.Conditions, object.Status.Conditions)
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
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Concurrency}).
		Complete(r)
}
