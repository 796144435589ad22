/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package controllers

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
)

// maxNote is the limit of events.k8s.io for the note of an event, in bytes.
const maxNote = 1024

// record makes an event whose note fits.
func record(recorder events.EventRecorder, object runtime.Object, eventType, reason, action, format string, args ...any) {
	note := fmt.Sprintf(format, args...)
	if len(note) > maxNote {
		note = strings.ToValidUTF8(note[:maxNote-4], "") + " ..."
	}
	recorder.Eventf(object, nil, eventType, reason, action, "%s", note)
}

// tellReady logs and announces that Ready has turned, or is not True for another reason.
// What was only just applied has an event of its own.
func tellReady(ctx context.Context, recorder events.EventRecorder, object runtime.Object, before, after []metav1.Condition) {
	now := meta.FindStatusCondition(after, v1alpha1.ConditionReady)
	was := meta.FindStatusCondition(before, v1alpha1.ConditionReady)
	if now == nil || now.Reason == v1alpha1.ReasonApplying || was != nil && was.Status == now.Status && was.Reason == now.Reason {
		return
	}
	logf.FromContext(ctx).Info("Ready has changed", "status", now.Status, "reason", now.Reason, "message", now.Message)
	eventType := corev1.EventTypeWarning
	if now.Status == metav1.ConditionTrue {
		eventType = corev1.EventTypeNormal
	}
	record(recorder, object, eventType, now.Reason, "Observe", "%s", now.Message)
}
