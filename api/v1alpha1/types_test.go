/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package v1alpha1_test

import (
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
)

func TestDefaults(t *testing.T) {
	t.Run("an empty spec means what is documented", func(t *testing.T) {
		g := NewWithT(t)
		spec, connection := v1alpha1.RetryPolicySpec{}, v1alpha1.BrokerConnectionSpec{}

		g.Expect(spec.EffectiveStrategy()).To(Equal(v1alpha1.StrategyLadder))
		g.Expect(spec.EffectiveQueueType()).To(Equal(v1alpha1.QueueTypeQuorum))
		g.Expect(spec.EffectiveDeletionPolicy()).To(Equal(v1alpha1.DeletionPolicyRetain))
		g.Expect(connection.EffectiveDefaultVhost()).To(Equal("/"))
		g.Expect(spec.EffectiveVhost("shop")).To(Equal("shop"))
	})

	t.Run("what a spec says counts", func(t *testing.T) {
		g := NewWithT(t)
		spec := v1alpha1.RetryPolicySpec{
			Vhost:          "own",
			Strategy:       "Other",
			QueueType:      v1alpha1.QueueTypeClassic,
			DeletionPolicy: v1alpha1.DeletionPolicyDelete,
		}
		connection := v1alpha1.BrokerConnectionSpec{DefaultVhost: "shop"}

		g.Expect(spec.EffectiveStrategy()).To(Equal(v1alpha1.Strategy("Other")))
		g.Expect(spec.EffectiveQueueType()).To(Equal(v1alpha1.QueueTypeClassic))
		g.Expect(spec.EffectiveDeletionPolicy()).To(Equal(v1alpha1.DeletionPolicyDelete))
		g.Expect(connection.EffectiveDefaultVhost()).To(Equal("shop"))
		g.Expect(spec.EffectiveVhost("shop")).To(Equal("own"))
	})
}

func TestAddToSchemeKnowsEveryKind(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())

	for _, kind := range []string{"RetryPolicy", "RetryPolicyList", "BrokerConnection", "BrokerConnectionList"} {
		g.Expect(scheme.Recognizes(v1alpha1.GroupVersion.WithKind(kind))).To(BeTrue(), kind)
	}
}

func TestRetryPolicyEncodesNothingThatIsUnset(t *testing.T) {
	g := NewWithT(t)

	encoded, err := json.Marshal(v1alpha1.RetryPolicy{Spec: v1alpha1.RetryPolicySpec{Queue: "orders"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(encoded).To(MatchJSON(`{"spec": {"queue": "orders"}}`))
}

func TestRetryPolicyDecodesDelays(t *testing.T) {
	g := NewWithT(t)

	var policy v1alpha1.RetryPolicy
	g.Expect(json.Unmarshal([]byte(`{"spec": {"backoff": {"tiers": [{"delay": "500ms"}, {"delay": "1m30s"}]}}}`), &policy)).To(Succeed())
	g.Expect(policy.Spec.Backoff.Tiers).To(HaveLen(2))
	g.Expect(policy.Spec.Backoff.Tiers[0].Delay.Duration).To(Equal(500 * time.Millisecond))
	g.Expect(policy.Spec.Backoff.Tiers[1].Delay.Duration).To(Equal(90 * time.Second))
}
