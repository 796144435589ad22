/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/broker"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/plan"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// TestRetriesGoOnWithoutTheOperator: what is on the broker does the retrying. The ladder is
// put there by hand, in a vhost that no RetryPolicy is about, so that no operator looks at
// it while the messages climb.
func TestRetriesGoOnWithoutTheOperator(t *testing.T) {
	t.Parallel()
	eachTarget(t, func(t *testing.T, w *world, queueType string) {
		const n = 50
		w.declare("orders", queueType, nil)
		w.build(topology.RequestFor(w.policy("orders", "orders", 4, delays...), "nobody"))

		policies := &v1alpha1.RetryPolicyList{}
		w.Expect(k8s.List(t.Context(), policies, client.InNamespace(w.namespace))).To(Succeed())
		w.Expect(policies.Items).To(BeEmpty())

		published := w.publish("", n, "orders")
		c := w.consume("orders", func(string, int) bool { return false })
		w.Eventually(c.count).Should(Equal(4 * n))
		w.expectAsPublished(c, published)
		w.expectOnly("orders.parked", n)
		w.Expect(c.count()).To(Equal(4*n), "deliveries after all was parked")
		w.drain("orders.parked", n)
	})
}

// build puts a ladder on the broker as the operator does: look, plan, apply, look again.
func (w *world) build(r topology.Request) {
	w.t.Helper()
	c, err := broker.NewClient(broker.Config{ManagementURL: w.broker.ManagementURL, Username: w.broker.Username, Password: w.broker.Password},
		broker.WithTimeout(patience/3))
	w.Expect(err).NotTo(HaveOccurred())
	defer c.Close()
	w.Eventually(func(g Gomega) {
		s, err := c.Observe(w.t.Context(), w.vhost)
		g.Expect(err).NotTo(HaveOccurred())
		p := plan.Compute(topology.Desired(r, s.Topology), s.Topology)
		w.Expect(p.Conflicts).To(BeEmpty())
		g.Expect(c.Apply(w.t.Context(), w.vhost, p.Steps).Err).NotTo(HaveOccurred())
		g.Expect(p.Done()).To(BeTrue())
	}).Should(Succeed())
}
