/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package apivalidation

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

// TestRetryPolicyKeepsWhatWasWritten shows that the server adds nothing to a
// spec, so that kubectl diff and GitOps tools stay quiet, and that a typed
// client can write a policy back that it read.
func TestRetryPolicyKeepsWhatWasWritten(t *testing.T) {
	tests := map[string]string{
		"the minimal policy":                     ``,
		"a policy with one attempt and no retry": `{maxAttempts: 1, backoff: null}`,
		"a policy with every field": `{
			vhost: shop, strategy: Ladder, queueType: classic, deletionPolicy: Delete,
			parkingLot: {queueName: orders.failed, alert: {messages: 100}}}`,
	}
	for name, changes := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			policy := object(t, minimalPolicy, changes)
			policy.SetNamespace(newNamespace(t))
			written := policy.DeepCopy().Object["spec"]
			g.Expect(server.Create(t.Context(), policy)).To(Succeed())
			g.Expect(policy.Object["spec"]).To(Equal(written))

			typed := &v1alpha1.RetryPolicy{}
			g.Expect(server.Get(t.Context(), client.ObjectKeyFromObject(policy), typed)).To(Succeed())
			typed.Labels = map[string]string{"written": "back"}
			g.Expect(server.Update(t.Context(), typed)).To(Succeed())
			g.Expect(typed.Generation).To(BeNumerically(">=", 1))

			g.Expect(server.Get(t.Context(), client.ObjectKeyFromObject(policy), policy)).To(Succeed())
			g.Expect(policy.GetLabels()).To(HaveKeyWithValue("written", "back"))
		})
	}
}

// TestRetryPolicyOfFractionsIsWrittenBack is about the way Go writes a duration:
// 1500ms becomes 1.5s in the hands of a typed client, which the schema must take.
func TestRetryPolicyOfFractionsIsWrittenBack(t *testing.T) {
	g := NewWithT(t)

	policy := object(t, minimalPolicy, `backoff: {tiers: [{delay: 1500ms}, {delay: 90s}, {delay: 60500ms}]}`)
	policy.SetNamespace(newNamespace(t))
	g.Expect(server.Create(t.Context(), policy)).To(Succeed())

	typed := &v1alpha1.RetryPolicy{}
	g.Expect(server.Get(t.Context(), client.ObjectKeyFromObject(policy), typed)).To(Succeed())
	g.Expect(typed.Spec.Backoff.Tiers[0].Delay.Duration).To(Equal(1500 * time.Millisecond))
	g.Expect(server.Update(t.Context(), typed)).To(Succeed())

	g.Expect(server.Get(t.Context(), client.ObjectKeyFromObject(policy), policy)).To(Succeed())
	tiers, _, err := unstructured.NestedSlice(policy.Object, "spec", "backoff", "tiers")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(tiers).To(Equal([]any{
		map[string]any{"delay": "1.5s"},
		map[string]any{"delay": "1m30s"},
		map[string]any{"delay": "1m0.5s"},
	}))
}

// TestRetryPolicyStatusTellsUnknownFromZero shows that a count of 0 is kept and
// an unknown one is absent.
func TestRetryPolicyStatusTellsUnknownFromZero(t *testing.T) {
	g := NewWithT(t)

	policy := fullPolicy(newNamespace(t))
	status := policy.Status
	g.Expect(server.Create(t.Context(), policy)).To(Succeed())

	policy.Status = status
	g.Expect(server.Status().Update(t.Context(), policy)).To(Succeed())

	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RetryPolicy"))
	g.Expect(server.Get(t.Context(), client.ObjectKeyFromObject(policy), stored)).To(Succeed())
	g.Expect(stored.Object["status"]).To(SatisfyAll(
		HaveKeyWithValue("retrying", int64(0)),
		HaveKeyWithValue("parked", Equal(map[string]any{"queueName": "orders.parked", "messages": int64(7)})),
		HaveKeyWithValue("tiers", Equal([]any{
			map[string]any{"attempt": int64(1), "delay": "10s", "queueName": "orders.retry.1.10s", "messages": int64(0)},
			map[string]any{"attempt": int64(2), "delay": "1m0s", "queueName": "orders.retry.2.1m"},
		})),
	))
}

func TestSamplesAreAccepted(t *testing.T) {
	g := NewWithT(t)

	root, err := sandbox.RepoRoot()
	g.Expect(err).NotTo(HaveOccurred())
	files, err := filepath.Glob(filepath.Join(root, "config", "samples", "rabbitmq_*.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).NotTo(BeEmpty())

	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			g := NewWithT(t)

			reader, err := os.Open(file)
			g.Expect(err).NotTo(HaveOccurred())
			t.Cleanup(func() { _ = reader.Close() })

			decoder := yaml.NewYAMLOrJSONDecoder(reader, 4096)

			for {
				sample := &unstructured.Unstructured{}
				if decoder.Decode(sample) != nil {
					break
				}

				g.Expect(server.Create(t.Context(), sample, client.DryRunAll)).To(Succeed())
			}
		})
	}
}

// fullPolicy is a policy with a status that says something about everything.
func fullPolicy(namespace string) *v1alpha1.RetryPolicy {
	none, parked := int64(0), int64(7)
	now := metav1.Now()

	return &v1alpha1.RetryPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "orders", Namespace: namespace},
		Spec: v1alpha1.RetryPolicySpec{
			BrokerRef:   v1alpha1.BrokerReference{Name: "main"},
			Vhost:       "shop",
			Queue:       "orders",
			MaxAttempts: 4,
			Backoff: v1alpha1.Backoff{Tiers: []v1alpha1.Tier{
				{Delay: metav1.Duration{Duration: 10 * time.Second}},
				{Delay: metav1.Duration{Duration: time.Minute}},
			}},
		},
		Status: v1alpha1.RetryPolicyStatus{
			Conditions: []metav1.Condition{
				condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonRetriesActive),
				condition(v1alpha1.ConditionParkingLotHealthy, metav1.ConditionUnknown, v1alpha1.ReasonUnknownCount),
			},
			ObservedGeneration: 1,
			Strategy:           v1alpha1.StrategyLadder,
			Vhost:              "shop",
			ConsumerContract:   "Reject without requeueing.",
			BrokerVersion:      "4.0.5",
			Tiers: []v1alpha1.TierStatus{
				{Attempt: 1, Delay: metav1.Duration{Duration: 10 * time.Second}, QueueName: "orders.retry.1.10s", Messages: &none},
				{Attempt: 2, Delay: metav1.Duration{Duration: time.Minute}, QueueName: "orders.retry.2.1m"},
			},
			Parked:           v1alpha1.ParkedStatus{QueueName: "orders.parked", Messages: &parked},
			Retrying:         &none,
			LastObservedTime: &now,
		},
	}
}
