/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/plan"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// Reasons of events.
const (
	eventApplied    = "TopologyApplied"
	eventFailed     = "ApplyFailed"
	eventReleased   = "Released"
	eventLeftBehind = "LeftBehind"
)

// release lets a deleted policy go: when nothing of it is left to do, when its vhost is
// gone, or when its broker has been out of reach, or in the way, for too long.
func (r *RetryPolicyReconciler) release(ctx context.Context, s *scope) (bool, error) {
	stuck := stuckOn(s)
	failingSince := r.pace.failing(s.policy, s.now, stuck != nil)
	if s.policy.DeletionTimestamp.IsZero() {
		return false, nil
	}
	switch {
	case stuck == nil && !s.plan.Done():
		return false, nil
	case stuck == nil:
		r.letGo(ctx, s, corev1.EventTypeNormal, eventReleased, "%s", r.farewell(s))
	case stuck.reason == v1alpha1.ReasonVhostNotFound:
		r.letGo(ctx, s, corev1.EventTypeNormal, eventReleased, "The vhost is gone, and everything of this policy with it")
	case s.now.Sub(latest(failingSince, s.policy.DeletionTimestamp.Time)) >= r.ReleaseAfter:
		r.letGo(ctx, s, corev1.EventTypeWarning, eventLeftBehind,
			"Given up after %s: %s. Exchanges, queues and policy of queue %q may be left on the broker; they carry the owner %s",
			r.ReleaseAfter, stuck, s.policy.Spec.Queue, r.owner(s.policy))
	default:
		return false, nil
	}
	return true, r.removeFinalizer(ctx, s.policy)
}

// letGo tells in an event and in the log, since a namespace that is going takes no events.
func (r *RetryPolicyReconciler) letGo(ctx context.Context, s *scope, eventType, reason, format string, args ...any) {
	logf.FromContext(ctx).Info("Let the policy go", "reason", reason, "note", fmt.Sprintf(format, args...))
	r.event(s, eventType, reason, "Delete", format, args...)
}

// stuckOn is what keeps the operator from its work on the broker until somebody does
// something about it, or nil.
func stuckOn(s *scope) *failure {
	if s.failure != nil {
		return s.failure
	}
	if len(s.plan.Conflicts) > 0 {
		return &failure{reason: string(s.plan.Conflicts[0].Kind), message: conflictText(s.plan.Conflicts)}
	}
	if slices.ContainsFunc(s.plan.Waits, func(w plan.Wait) bool { return w.Blocked }) {
		return &failure{reason: v1alpha1.ReasonMigrating, message: waitText(s.plan.Waits)}
	}
	return nil
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (r *RetryPolicyReconciler) owner(p *v1alpha1.RetryPolicy) topology.Owner {
	return topology.RequestFor(p, r.Installation).Owner
}

// farewell says what stays on the broker.
func (r *RetryPolicyReconciler) farewell(s *scope) string {
	var left []string
	for _, q := range s.snapshot.Topology.OwnedQueues(r.owner(s.policy)) {
		text := fmt.Sprintf("queue %s", q.Name)
		if q.State.Messages != nil {
			text += fmt.Sprintf(" with %d messages", *q.State.Messages)
		}
		left = append(left, text)
	}
	if len(left) == 0 {
		return "Nothing of this policy is left on the broker"
	}
	return "Left on the broker: " + strings.Join(left, ", ")
}

func (r *RetryPolicyReconciler) removeFinalizer(ctx context.Context, policy *v1alpha1.RetryPolicy) error {
	before := policy.DeepCopy()
	controllerutil.RemoveFinalizer(policy, Finalizer)
	if err := r.patchFinalizers(ctx, policy, before); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer: %w", err)
	}
	r.pace.forget(client.ObjectKeyFromObject(policy))
	return nil
}

func (r *RetryPolicyReconciler) event(s *scope, eventType, reason, action, format string, args ...any) {
	record(r.Recorder, s.policy, eventType, reason, action, format, args...)
}

// announce tells what was changed, and why, in the log and in events.
func (r *RetryPolicyReconciler) announce(ctx context.Context, s *scope) {
	log := logf.FromContext(ctx)
	for _, step := range s.report.Applied {
		log.Info("Applied step", "vhost", s.vhost, "step", step.String(), "because", step.Reason)
	}
	if len(s.report.Applied) > 0 {
		r.event(s, corev1.EventTypeNormal, eventApplied, "Apply", "%s", plan.Summary(s.report.Applied))
	}
	if s.report.Failed != nil && !alreadyTold(s) {
		r.event(s, corev1.EventTypeWarning, eventFailed, "Apply", "Could not %s: %v", s.report.Failed, s.report.Err)
	}
}

// alreadyTold reports whether the status says why steps fail, so that a step which fails at
// each look makes one event and not one for each.
func alreadyTold(s *scope) bool {
	f := failureOf(s.report.Err)
	c := meta.FindStatusCondition(s.policy.Status.Conditions, v1alpha1.ConditionReady)
	return f != nil && c != nil && c.Reason == f.reason
}
