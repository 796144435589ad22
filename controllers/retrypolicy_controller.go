/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package controllers

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/broker"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/deadletter"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/plan"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// Finalizer keeps a RetryPolicy until its messages have found their way home.
const Finalizer = "rabbitmq.retry-operator.io/topology"

// +kubebuilder:rbac:groups=rabbitmq.retry-operator.io,resources=retrypolicies,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=rabbitmq.retry-operator.io,resources=retrypolicies/status,verbs=patch
// +kubebuilder:rbac:groups=rabbitmq.retry-operator.io,resources=brokerconnections,verbs=get;list;watch
// +kubebuilder:rbac:groups=rabbitmq.retry-operator.io,resources=brokerconnections/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,resourceNames=kube-system,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// RetryPolicyReconciler keeps the topology of each RetryPolicy true.
type RetryPolicyReconciler struct {
	client.Client
	Recorder    events.EventRecorder
	Connections *Connections
	Observer    *broker.Observer
	// Installation tells this cluster's objects from another's on the same broker.
	Installation string
	// PollInterval is how often a vhost is observed.
	PollInterval time.Duration
	// ReleaseAfter is how long a deleted policy waits for a broker that can't be reached.
	ReleaseAfter time.Duration
	// Concurrency is how many policies are reconciled at a time.
	Concurrency int

	pace pace
}

// scope is what one reconcile has found out. The status is made from it.
type scope struct {
	policy   *v1alpha1.RetryPolicy
	now      time.Time
	conn     *Connection
	vhost    string
	snapshot *broker.Snapshot
	ladder   topology.Ladder
	findings []deadletter.Finding
	hazards  []deadletter.Hazard
	plan     plan.Plan
	report   broker.Report
	failure  *failure
}

// Reconcile observes the broker, plans, applies what is missing and reports what was
// observed. Whatever it has changed, the next look has to show.
func (r *RetryPolicyReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	policy := &v1alpha1.RetryPolicy{}
	if err := r.Get(ctx, req.NamespacedName, policy); err != nil {
		if apierrors.IsNotFound(err) {
			r.pace.forget(req.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !policy.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(policy, Finalizer) {
		return ctrl.Result{}, nil
	}
	if err := r.ensureFinalizer(ctx, policy); err != nil {
		return ctrl.Result{}, fmt.Errorf("add the finalizer: %w", err)
	}

	s := &scope{policy: policy, now: time.Now()}
	for _, phase := range []func(context.Context, *scope) error{
		r.connect,
		r.observe,
		r.decide,
		r.yieldToElder,
		r.apply,
	} {
		if err := phase(ctx, s); err != nil {
			if s.failure = failureOf(err); s.failure == nil {
				return ctrl.Result{}, err
			}
			break
		}
	}
	if released, err := r.release(ctx, s); released || err != nil {
		return ctrl.Result{}, err
	}
	if err := r.writeStatus(ctx, s); err != nil {
		return ctrl.Result{}, fmt.Errorf("write the status: %w", err)
	}
	return ctrl.Result{RequeueAfter: r.next(s)}, nil
}

func (r *RetryPolicyReconciler) ensureFinalizer(ctx context.Context, policy *v1alpha1.RetryPolicy) error {
	before := policy.DeepCopy()
	if !policy.DeletionTimestamp.IsZero() || !controllerutil.AddFinalizer(policy, Finalizer) {
		return nil
	}
	return r.patchFinalizers(ctx, policy, before)
}

// patchFinalizers fails on a conflict: a merge patch replaces the whole list, and somebody
// else's finalizer with it.
func (r *RetryPolicyReconciler) patchFinalizers(ctx context.Context, policy, before *v1alpha1.RetryPolicy) error {
	return r.Patch(ctx, policy, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// connect finds the client of the policy's connection.
func (r *RetryPolicyReconciler) connect(ctx context.Context, s *scope) error {
	conn, err := r.Connections.Get(ctx, connectionKey(s.policy))
	if err != nil {
		return err
	}
	s.conn = conn
	s.vhost = s.policy.Spec.EffectiveVhost(conn.Object.Spec.EffectiveDefaultVhost())
	return nil
}

func connectionKey(p *v1alpha1.RetryPolicy) types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Spec.BrokerRef.Name}
}

// observe takes the shared look at the vhost, a new one if this policy has changed
// something since.
func (r *RetryPolicyReconciler) observe(ctx context.Context, s *scope) error {
	snapshot, err := r.Observer.Snapshot(ctx, s.conn.Client, s.vhost, r.pace.notBefore(s.policy))
	if err != nil {
		return err
	}
	s.snapshot = &snapshot
	if !supported(snapshot.Version) {
		return unsupported(snapshot.Version)
	}
	return nil
}

// decide is the pure part: what should be, what is wrong, what to do.
func (r *RetryPolicyReconciler) decide(_ context.Context, s *scope) error {
	observed := s.snapshot.Topology
	s.ladder = topology.Desired(topology.RequestFor(s.policy, r.Installation), observed)
	s.plan = plan.Compute(s.ladder, observed)
	if !s.ladder.Request.Deleting {
		s.findings = deadletter.Prove(s.ladder, observed)
		if s.ladder.TargetFound {
			s.hazards = deadletter.Hazards(s.ladder, observed)
		}
	}
	return nil
}

// apply carries out the plan.
func (r *RetryPolicyReconciler) apply(ctx context.Context, s *scope) error {
	if len(s.plan.Steps) == 0 {
		r.pace.settled(s.policy)
		return nil
	}
	s.report = s.conn.Client.Apply(ctx, s.vhost, s.plan.Steps)
	r.pace.wrote(s.policy, time.Now())
	r.announce(ctx, s)
	return s.report.Err
}

// next is when to look again: at once after a change, which the broker has to confirm,
// else when the next shared look is due.
func (r *RetryPolicyReconciler) next(s *scope) time.Duration {
	if s.failure == nil && len(s.report.Applied) > 0 && r.pace.hurry(s.policy) {
		return verifyAfter
	}
	due := r.PollInterval
	if s.conn != nil {
		due = time.Until(r.Observer.Next(s.conn.Client, s.vhost))
	}
	return max(due, verifyAfter)
}
