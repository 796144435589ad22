/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package controllers

import (
	"context"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// consumerContract is the consumer's whole part in the Ladder strategy.
const consumerContract = "Acknowledge what succeeded. When processing fails, basic.reject or basic.nack with requeue=false " +
	"(AMQP 1.0: rejected). The broker delays the message, delivers it again with its body, properties, headers and routing key " +
	"as published, and parks it after the last attempt. Do not requeue, republish or count. A message can be delivered more " +
	"than once, so processing must be idempotent."

// quietIntervals is how many poll intervals pass between two writes of a status in which
// only numbers and texts have changed: once a minute by default.
const quietIntervals = 4

func (r *RetryPolicyReconciler) writeStatus(ctx context.Context, s *scope) error {
	before := s.policy.DeepCopy()
	next := statusOf(s)
	if !worthWriting(&before.Status, &next, s.now, quietIntervals*r.PollInterval) {
		return nil
	}
	s.policy.Status = next
	if err := r.Status().Patch(ctx, s.policy, client.MergeFrom(before)); err != nil {
		return client.IgnoreNotFound(err)
	}
	tellReady(ctx, r.Recorder, s.policy, before.Status.Conditions, next.Conditions)
	return nil
}

// statusOf makes the status from what this reconcile has found out. What it could not
// find out is absent or Unknown.
func statusOf(s *scope) v1alpha1.RetryPolicyStatus {
	old := s.policy.Status
	next := v1alpha1.RetryPolicyStatus{
		Conditions:         append([]metav1.Condition(nil), old.Conditions...),
		ObservedGeneration: s.policy.Generation,
		Strategy:           s.policy.Spec.EffectiveStrategy(),
		ConsumerContract:   consumerContract,
		Vhost:              old.Vhost,
		BrokerVersion:      old.BrokerVersion,
		LastObservedTime:   old.LastObservedTime,
	}
	if s.vhost != "" {
		next.Vhost = s.vhost
	}
	if s.snapshot != nil {
		next.BrokerVersion = s.snapshot.Version
		next.LastObservedTime = &metav1.Time{Time: s.snapshot.TakenAt.Truncate(time.Second)}
	}
	addCounts(&next, s)
	for _, c := range conditionsOf(s) {
		c.ObservedGeneration = s.policy.Generation
		meta.SetStatusCondition(&next.Conditions, c)
	}
	return next
}

func addCounts(next *v1alpha1.RetryPolicyStatus, s *scope) {
	r := s.ladder.Request
	if r.ParkingLot == "" {
		r = topology.RequestFor(s.policy, "")
	}
	next.Parked = v1alpha1.ParkedStatus{QueueName: r.ParkingLot, Messages: messagesIn(s, r.ParkingLot)}
	for _, t := range s.ladder.Tiers {
		next.Tiers = append(next.Tiers, v1alpha1.TierStatus{
			Attempt:   int32(t.Attempt), //nolint:gosec // attempts are at most 32 by the schema
			Delay:     metav1.Duration{Duration: t.Delay},
			QueueName: t.Queue,
			Messages:  messagesIn(s, t.Queue),
		})
	}
	next.Retrying = retrying(s)
}

// retrying is the number of messages in all tiers on the broker, those of an earlier form
// of the policy included, or nil when one of them, or one that should be there, is unknown.
func retrying(s *scope) *int64 {
	if s.snapshot == nil || s.ladder.Park == "" || notOurs(s) {
		return nil
	}
	names := map[string]bool{}
	for _, t := range s.ladder.Tiers {
		names[t.Queue] = true
	}
	for _, q := range s.snapshot.Topology.OwnedQueues(s.ladder.Request.Owner) {
		if q.Arguments.RoleOf() == topology.RoleTier {
			names[q.Name] = true
		}
	}
	var sum int64
	for name := range names {
		n := messagesIn(s, name)
		if n == nil {
			return nil
		}
		sum += *n
	}
	return &sum
}

// messagesIn returns the observed count of a queue of this policy's, or nil.
func messagesIn(s *scope, queue string) *int64 {
	if s.snapshot == nil {
		return nil
	}
	q, ok := s.snapshot.Topology.Queues[queue]
	if !ok || q.State == nil || q.Arguments.OwnerOf() != s.ladder.Request.Owner.String() {
		return nil
	}
	return q.State.Messages
}

// worthWriting keeps status writes rare: a condition that turned or a count that crossed
// zero at once, everything else once in a while.
func worthWriting(old, next *v1alpha1.RetryPolicyStatus, now time.Time, quiet time.Duration) bool {
	if equality.Semantic.DeepEqual(old, next) {
		return false
	}
	if gist(old) != gist(next) {
		return true
	}
	return old.LastObservedTime == nil || now.Sub(old.LastObservedTime.Time) >= quiet
}

// gist is what a reader must learn at once, as one comparable text.
func gist(s *v1alpha1.RetryPolicyStatus) string {
	parts := []string{s.Vhost, s.BrokerVersion, countGist(s.Retrying), countGist(s.Parked.Messages), s.Parked.QueueName}
	for _, t := range s.Tiers {
		parts = append(parts, t.QueueName)
	}
	for _, c := range s.Conditions {
		parts = append(parts, c.Type, string(c.Status), c.Reason, strconv.FormatInt(c.ObservedGeneration, 10))
	}
	return strings.Join(parts, " ")
}

func countGist(n *int64) string {
	switch {
	case n == nil:
		return "?"
	case *n == 0:
		return "0"
	}
	return "+"
}
