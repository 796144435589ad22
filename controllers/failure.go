/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

// Package controllers reconciles the operator's kinds: it observes the broker, plans,
// applies, and reports what was observed.
package controllers

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/broker"
)

// failure is why a reconcile could not look at the broker, or change it, as the status
// shows it.
type failure struct {
	reason  string
	message string
}

func (f *failure) Error() string { return f.reason + ": " + f.message }

// reasonByClass is the one place where an error of the broker becomes a reason.
var reasonByClass = map[broker.Class]string{
	broker.Unreachable:          v1alpha1.ReasonBrokerUnreachable,
	broker.AuthenticationFailed: v1alpha1.ReasonAuthenticationFailed,
	broker.PermissionDenied:     v1alpha1.ReasonPermissionDenied,
	broker.VhostNotFound:        v1alpha1.ReasonVhostNotFound,
	broker.Rejected:             v1alpha1.ReasonBrokerRefused,
	broker.Internal:             v1alpha1.ReasonBrokerError,
	broker.AMQPUnreachable:      v1alpha1.ReasonAMQPUnreachable,
}

// failureOf returns the failure in an error, or makes one of a broker's error. It returns
// nil for an error that is neither: the API server's, to be returned and retried.
func failureOf(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if reason, ok := reasonByClass[broker.ClassOf(err)]; ok {
		return &failure{reason: reason, message: err.Error()}
	}
	return nil
}

// status is what a failure to look at a broker says of it. That it is away, or in trouble
// itself, says nothing, and is nobody's mistake.
func (f *failure) status() metav1.ConditionStatus {
	if f.reason == v1alpha1.ReasonBrokerUnreachable || f.reason == v1alpha1.ReasonBrokerError {
		return metav1.ConditionUnknown
	}
	return metav1.ConditionFalse
}
