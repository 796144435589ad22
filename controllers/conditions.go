/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package controllers

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/plan"
)

// conditionsOf judges what was observed before this reconcile changed anything, so a
// condition never says what nobody has seen.
func conditionsOf(s *scope) []metav1.Condition {
	topologyReady := topologyReady(s)
	bindingsHealthy := bindingsHealthy(s)
	return []metav1.Condition{
		ready(topologyReady, bindingsHealthy),
		topologyReady,
		bindingsHealthy,
		deadLetteringSafe(s),
		parkingLotHealthy(s),
	}
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: shorten(message)}
}

// maxMessage is the limit of metav1.Condition.
const maxMessage = 32768

func shorten(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage-4], "") + " ..."
}

// ready sums up: the first of the two that is not true decides.
func ready(parts ...metav1.Condition) metav1.Condition {
	for _, c := range parts {
		if c.Status != metav1.ConditionTrue {
			return condition(v1alpha1.ConditionReady, c.Status, c.Reason, c.Message)
		}
	}
	return condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonRetriesActive,
		"Rejected messages are retried with delay and parked after the last attempt")
}

func topologyReady(s *scope) metav1.Condition {
	no := func(reason, message string) metav1.Condition {
		return condition(v1alpha1.ConditionTopologyReady, metav1.ConditionFalse, reason, message)
	}
	switch {
	case s.failure != nil && s.snapshot == nil:
		return condition(v1alpha1.ConditionTopologyReady, s.failure.status(), s.failure.reason, s.failure.message)
	case s.failure != nil:
		return no(s.failure.reason, s.failure.message)
	case len(s.plan.Conflicts) > 0:
		return no(string(s.plan.Conflicts[0].Kind), conflictText(s.plan.Conflicts))
	case len(s.report.Applied) > 0:
		return no(v1alpha1.ReasonApplying, appliedText(s.report.Applied))
	case !s.ladder.TargetFound && !s.ladder.Request.Deleting:
		return no(v1alpha1.ReasonTargetQueueNotFound, fmt.Sprintf(
			"Queue %q does not exist in vhost %q; everything else is in place, and the queue is bound when it appears", s.policy.Spec.Queue, s.vhost))
	case len(s.plan.Waits) > 0:
		return no(v1alpha1.ReasonMigrating, waitText(s.plan.Waits))
	}
	return condition(v1alpha1.ConditionTopologyReady, metav1.ConditionTrue, v1alpha1.ReasonTopologyApplied,
		"Every exchange, queue, binding and policy is on the broker as wanted")
}

func conflictText(conflicts []plan.Conflict) string {
	texts := make([]string, 0, len(conflicts))
	for _, c := range conflicts {
		texts = append(texts, c.Message)
	}
	return strings.Join(texts, "; ")
}

func appliedText(steps []plan.Step) string {
	texts := make([]string, 0, len(steps))
	for _, s := range steps {
		texts = append(texts, s.Reason)
	}
	return fmt.Sprintf("%d changes were sent and wait to be observed: %s", len(steps), strings.Join(texts, "; "))
}

func waitText(waits []plan.Wait) string {
	texts := make([]string, 0, len(waits))
	for _, w := range waits {
		texts = append(texts, fmt.Sprintf("%s waits: %s", w.Object, w.Reason))
	}
	return "Earlier parts are still in use: " + strings.Join(texts, "; ")
}

// notObserved explains why a condition can't be judged, or returns "".
func notObserved(s *scope) string {
	switch {
	case s.snapshot == nil:
		return "The broker was not observed; see TopologyReady"
	case s.ladder.Request.Deleting:
		return "The policy is being deleted"
	case s.ladder.Park == "":
		return "The topology was not looked at; see TopologyReady"
	}
	if notOurs(s) {
		return "What is on the broker is not this policy's; see TopologyReady"
	}
	return ""
}

// notOurs reports whether what was observed under the policy's names is somebody else's.
func notOurs(s *scope) bool {
	if s.failure != nil && s.failure.reason == v1alpha1.ReasonTargetClaimed {
		return true
	}
	return slices.ContainsFunc(s.plan.Conflicts, func(c plan.Conflict) bool {
		return c.Kind == plan.TargetClaimed || c.Kind == plan.NotOwned
	})
}

func bindingsHealthy(s *scope) metav1.Condition {
	if why := notObserved(s); why != "" {
		return condition(v1alpha1.ConditionBindingsHealthy, metav1.ConditionUnknown, v1alpha1.ReasonNotObserved, why)
	}
	if len(s.findings) == 0 {
		return condition(v1alpha1.ConditionBindingsHealthy, metav1.ConditionTrue, v1alpha1.ReasonAllPathsProven,
			"Every failure leads to its tier, every tier back to the target, and every other death to the parking lot")
	}
	texts := make([]string, 0, len(s.findings))
	for _, f := range s.findings {
		texts = append(texts, f.Message)
	}
	return condition(v1alpha1.ConditionBindingsHealthy, metav1.ConditionFalse, string(s.findings[0].Kind), strings.Join(texts, "; "))
}

func deadLetteringSafe(s *scope) metav1.Condition {
	why := notObserved(s)
	if why == "" && !s.ladder.TargetFound {
		why = "The target queue does not exist; see TopologyReady"
	}
	if why == "" && s.snapshot.Topology.Queues[s.policy.Spec.Queue].State.PolicyUnconfirmed {
		why = "The broker does not yet report the policy as in effect on the queue; its reports are up to 10 s old"
	}
	if why != "" {
		return condition(v1alpha1.ConditionDeadLetteringSafe, metav1.ConditionUnknown, v1alpha1.ReasonNotObserved, why)
	}
	if len(s.hazards) == 0 {
		return condition(v1alpha1.ConditionDeadLetteringSafe, metav1.ConditionTrue, v1alpha1.ReasonNoLossPossible,
			"Every hop keeps a message until the next queue has confirmed it")
	}
	texts := make([]string, 0, len(s.hazards))
	for _, h := range s.hazards {
		texts = append(texts, h.Message)
	}
	return condition(v1alpha1.ConditionDeadLetteringSafe, metav1.ConditionFalse, string(s.hazards[0].Kind), strings.Join(texts, "; "))
}

func parkingLotHealthy(s *scope) metav1.Condition {
	const kind = v1alpha1.ConditionParkingLotHealthy
	if why := notObserved(s); why != "" {
		return condition(kind, metav1.ConditionUnknown, v1alpha1.ReasonNotObserved, why)
	}
	lot := s.ladder.Request.ParkingLot
	limit := s.policy.Spec.ParkingLot.Alert.Messages
	parked := messagesIn(s, lot)
	switch {
	case limit == 0:
		return condition(kind, metav1.ConditionTrue, v1alpha1.ReasonBelowThresholds, "No alert threshold is set")
	case parked == nil:
		return condition(kind, metav1.ConditionUnknown, v1alpha1.ReasonUnknownCount,
			fmt.Sprintf("The broker does not say how many messages queue %q holds", lot))
	case *parked >= limit:
		return condition(kind, metav1.ConditionFalse, v1alpha1.ReasonDepthThresholdExceeded,
			fmt.Sprintf("Queue %q holds %d parked messages, and the alert is set at %d", lot, *parked, limit))
	}
	return condition(kind, metav1.ConditionTrue, v1alpha1.ReasonBelowThresholds,
		fmt.Sprintf("Queue %q is below the alert of %d parked messages", lot, limit))
}
