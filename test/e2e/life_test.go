/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package e2e

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	amqp "github.com/rabbitmq/amqp091-go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
)

func TestDeletingAPolicyLosesNothing(t *testing.T) {
	t.Parallel()
	eachTarget(t, func(t *testing.T, w *world, queueType string) {
		const each = 50
		w.declare("orders", queueType, nil)
		p := w.policy("orders", "orders", 3, 2*time.Second, 10*time.Second)
		w.ready(p)

		t.Log("some messages wait in the second tier, some lie in the parking lot")
		w.publish("", each, "orders")
		c := w.consume("orders", func(string, int) bool { return false })
		w.Eventually(c.count).Should(Equal(2 * each))
		w.Expect(k8s.Delete(t.Context(), p)).To(Succeed())

		t.Log("from now on what is rejected is parked; the tier drains into the target")
		w.Eventually(c.count).Should(Equal(3 * each))
		w.gone(p)
		w.expectOnly("orders.parked", each)
		w.Expect(w.policyOf("orders")).To(BeEmpty())
		w.Expect(w.inventoryOf("exchanges", "orders.")).To(BeEmpty(), "exchanges left behind")
		w.Expect(w.inventoryOf("queues", "orders.")).To(ConsistOf("orders.parked"))
		w.Expect(w.events(p)).To(ContainElement(ContainSubstring("queue orders.parked with 50 messages")))
		w.drain("orders.parked", each)
	})
}

func TestDeletionPolicyDeleteTakesAnEmptyParkingLotAlong(t *testing.T) {
	t.Parallel()
	eachBroker(t, func(t *testing.T, version string) {
		w := newWorld(t, version)
		w.declare("orders", "quorum", nil)
		p := w.policy("orders", "orders", 2, time.Second)
		p.Spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete
		w.ready(p)
		w.Expect(k8s.Delete(t.Context(), p)).To(Succeed())
		w.gone(p)
		w.Expect(w.inventoryOf("queues", "orders")).To(ConsistOf("orders"))
		w.Expect(w.inventoryOf("exchanges", "orders")).To(BeEmpty())
	})
}

// inventoryOf names the objects of a kind that begin with a prefix.
func (w *world) inventoryOf(kind, prefix string) []string {
	var out []string
	for _, o := range w.mgmt.list(w.t, path(kind, w.vhost)) {
		if name, _ := o["name"].(string); len(name) >= len(prefix) && name[:len(prefix)] == prefix {
			out = append(out, name)
		}
	}
	return out
}

func TestATargetThatAppearsLaterIsBound(t *testing.T) {
	t.Parallel()
	eachTarget(t, func(t *testing.T, w *world, queueType string) {
		p := w.policy("orders", "orders", 2, 200*time.Millisecond)
		w.create(p)
		w.eventually(p, v1alpha1.ConditionReady, "False", v1alpha1.ReasonTargetQueueNotFound)

		t.Log("a message that is rejected in the first moment of the target's life is kept")
		w.declare("orders", queueType, nil)
		w.publish("", 1, "orders")
		ch := w.channel()
		var d amqp.Delivery
		w.Eventually(func() (bool, error) {
			var ok bool
			var err error
			d, ok, err = ch.Get("orders", false)
			return ok, err
		}).Should(BeTrue())
		w.Expect(d.Reject(false)).To(Succeed())
		w.eventually(p, v1alpha1.ConditionReady, "True", v1alpha1.ReasonRetriesActive)
		w.Eventually(func() int { return w.depths()["orders"] + w.depths()["orders.parked"] }).Should(Equal(1))
	})
}

func TestATargetThatIsDeletedMeanwhileHasItsMessagesParked(t *testing.T) {
	t.Parallel()
	eachTarget(t, func(t *testing.T, w *world, queueType string) {
		w.declare("orders", queueType, nil)
		p := w.policy("orders", "orders", 2, 20*time.Second)
		w.ready(p)
		w.publish("", 20, "orders")
		c := w.consume("orders", func(string, int) bool { return false })
		w.Eventually(c.count).Should(Equal(20))
		// With the queue goes what is still in it: all have to be in their tier.
		w.Eventually(func() int { return w.readyIn("orders.retry.1.20s") }).Should(Equal(20))
		w.mgmt.must(t, http.MethodDelete, path("queues", w.vhost, "orders"), nil)
		w.eventually(p, v1alpha1.ConditionReady, "False", v1alpha1.ReasonTargetQueueNotFound)
		w.expectOnly("orders.parked", 20)
	})
}

func TestASecondPolicyOnTheSameQueueIsRefused(t *testing.T) {
	t.Parallel()
	eachBroker(t, func(t *testing.T, version string) {
		w := newWorld(t, version)
		w.declare("orders", "quorum", nil)
		first, second := w.policy("first", "orders", 2, time.Second), w.policy("second", "orders", 4, 2*time.Second)
		w.ready(first)
		before := w.inventory()
		w.create(second)
		w.eventually(second, v1alpha1.ConditionReady, "False", v1alpha1.ReasonTargetClaimed)
		w.Expect(w.inventory()).To(Equal(before))

		w.Expect(k8s.Delete(t.Context(), second)).To(Succeed())
		w.gone(second)
		w.Expect(w.inventory()).To(Equal(before), "deleting the loser harmed the winner")
		w.eventually(first, v1alpha1.ConditionReady, "True", v1alpha1.ReasonRetriesActive)
	})
}

func TestForeignObjectsAreRefusedAndLeftAlone(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		prepare func(w *world)
		reason  string
		names   string
	}{
		"a foreign queue where the parking lot should be": {
			func(w *world) { w.declare("orders.parked", "quorum", amqp.Table{"x-message-ttl": int32(60000)}) },
			v1alpha1.ReasonNotOwned, "orders.parked",
		},
		"a target declared with a dead-letter exchange": {
			func(w *world) {
				w.mgmt.must(w.t, http.MethodDelete, path("queues", w.vhost, "orders"), nil)
				w.declare("orders", "quorum", amqp.Table{"x-dead-letter-exchange": "theirs"})
			},
			v1alpha1.ReasonQueueArgumentMismatch, "x-dead-letter-exchange",
		},
		"a foreign policy with a dead-letter exchange": {
			func(w *world) {
				w.mgmt.must(w.t, http.MethodPut, path("policies", w.vhost, "theirs"), map[string]any{
					"pattern": ".*", "apply-to": "queues", "priority": 50, "definition": map[string]any{"dead-letter-exchange": "x"}})
			},
			v1alpha1.ReasonPolicyConflict, "theirs",
		},
		"a stream as target": {
			func(w *world) {
				w.mgmt.must(w.t, http.MethodDelete, path("queues", w.vhost, "orders"), nil)
				w.declare("orders", "stream", nil)
			},
			v1alpha1.ReasonUnsupportedTargetType, "stream",
		},
	}
	eachBroker(t, func(t *testing.T, version string) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, version)
				w.declare("orders", "quorum", nil)
				c.prepare(w)
				before := w.inventory()
				p := w.policy("orders", "orders", 2, time.Second)
				w.create(p)
				w.eventually(p, v1alpha1.ConditionReady, metav1.ConditionFalse, c.reason)
				w.Expect(w.describe(p)).To(ContainSubstring(c.names))
				w.Expect(w.inventory()).To(Equal(before), "something was touched")
				w.Expect(k8s.Delete(t.Context(), p)).To(Succeed())
				w.gone(p)
				w.Expect(w.inventory()).To(Equal(before), "something was touched")
			})
		}
	})
}

func TestTheKeysOfAnOutrankedPolicyStayInEffect(t *testing.T) {
	t.Parallel()
	eachTarget(t, func(t *testing.T, w *world, queueType string) {
		foreign := func(maxLength int) {
			w.mgmt.must(t, http.MethodPut, path("policies", w.vhost, "theirs"), map[string]any{
				"pattern": "^orders$", "apply-to": "queues", "priority": 500, "definition": map[string]any{"max-length": maxLength}})
		}
		foreign(1000)
		w.declare("orders", queueType, nil)
		p := w.policy("orders", "orders", 2, time.Second)
		w.ready(p)
		ours := path("policies", w.vhost, "retry-operator."+p.Namespace+".orders")
		limit := func() any {
			o, _ := w.mgmt.must(t, http.MethodGet, ours, nil).(map[string]any)
			definition, _ := o["definition"].(map[string]any)
			return definition["max-length"]
		}
		w.Expect(limit()).To(BeEquivalentTo(1000))
		foreign(2000)
		w.Eventually(limit).Should(BeEquivalentTo(2000))
	})
}

func TestAChangeOfTheLadderKeepsWhatWaits(t *testing.T) {
	t.Parallel()
	eachTarget(t, func(t *testing.T, w *world, queueType string) {
		const n = 50
		w.declare("orders", queueType, nil)
		p := w.policy("orders", "orders", 4, 3*time.Second)
		w.ready(p)
		w.publish("", n, "orders")
		c := w.consume("orders", func(string, int) bool { return false })
		w.Eventually(c.count).Should(Equal(n))

		changed := w.get(p)
		changed.Spec.MaxAttempts = 3
		changed.Spec.Backoff.Tiers = []v1alpha1.Tier{
			{Delay: metav1.Duration{Duration: time.Second}}, {Delay: metav1.Duration{Duration: 2 * time.Second}}}
		w.Expect(k8s.Update(t.Context(), changed)).To(Succeed())
		w.eventually(p, v1alpha1.ConditionReady, "True", v1alpha1.ReasonRetriesActive)

		w.Eventually(c.count).Should(Equal(3 * n))
		w.expectOnly("orders.parked", n)
		w.Expect(w.inventoryOf("queues", "orders.retry.")).To(ConsistOf("orders.retry.1.1s", "orders.retry.2.2s"))
		w.drain("orders.parked", n)
	})
}

func TestAPolicyGoesWhenWhatItNeedsIsGoneAlready(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		take  func(w *world)
		event string
	}{
		"its Secret": {
			func(w *world) {
				w.Expect(k8s.Delete(w.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "main"}})).To(Succeed())
			}, "Warning LeftBehind",
		},
		"its connection": {
			func(w *world) {
				w.Expect(k8s.Delete(w.t.Context(), &v1alpha1.BrokerConnection{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "main"}})).To(Succeed())
			}, "Warning LeftBehind",
		},
		"its vhost": {
			func(w *world) { w.mgmt.must(w.t, http.MethodDelete, path("vhosts", w.vhost), nil) }, "Normal Released",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachBroker(t, func(t *testing.T, version string) {
				w := newWorld(t, version)
				w.declare("orders", "quorum", nil)
				p := w.policy("orders", "orders", 2, time.Second)
				w.ready(p)
				c.take(w)
				w.Expect(k8s.Delete(t.Context(), p)).To(Succeed())
				w.gone(p)
				w.Eventually(func() []string { return w.events(p) }).Should(ContainElement(HavePrefix(c.event)))
			})
		})
	}
}

// TestAMessageThatIsPublishedAgainStartsAtTheFirstTier: a client that copies a message with
// its old x-death headers, or forges them, gains and loses no attempt.
func TestAMessageThatIsPublishedAgainStartsAtTheFirstTier(t *testing.T) {
	t.Parallel()
	eachTarget(t, func(t *testing.T, w *world, queueType string) {
		w.declare("orders", queueType, nil)
		w.ready(w.policy("orders", "orders", 3, 200*time.Millisecond))
		c := w.consume("orders", func(string, int) bool { return false })
		ch := w.channel()
		w.Expect(ch.Publish("", "orders", true, false, amqp.Publishing{
			MessageId: "again", DeliveryMode: amqp.Persistent,
			Headers: amqp.Table{
				"x-last-death-exchange": "orders.retry.2.return", "x-last-death-reason": "rejected", "x-last-death-queue": "orders",
				"x-death": []any{amqp.Table{"queue": "orders", "reason": "rejected", "count": int64(2), "exchange": "orders.retry.2.return"}},
			},
		})).To(Succeed())
		w.Eventually(c.count).Should(Equal(3))
		w.expectOnly("orders.parked", 1)
		w.Expect(c.count()).To(Equal(3))
	})
}

func TestTwinsInTwoNamespacesDoNotHarmEachOther(t *testing.T) {
	t.Parallel()
	eachBroker(t, func(t *testing.T, version string) {
		first, second := newWorld(t, version), newWorld(t, version)
		first.declare("orders", "quorum", nil)
		winner := first.policy("orders", "orders", 2, time.Second)
		first.ready(winner)
		before := first.inventory()

		loser := second.policy("orders", "orders", 3, time.Second)
		loser.Spec.Vhost = first.vhost
		second.create(loser)
		second.eventually(loser, v1alpha1.ConditionReady, "False", v1alpha1.ReasonTargetClaimed)
		second.Expect(k8s.Delete(t.Context(), loser)).To(Succeed())
		second.gone(loser)
		first.Expect(first.inventory()).To(Equal(before))

		t.Log("when the winner goes, a twin takes the queue over, its parking lot apart")
		heir := second.policy("heir", "orders", 3, time.Second)
		heir.Spec.Vhost = first.vhost
		heir.Spec.ParkingLot.QueueName = "orders.failed"
		second.create(heir)
		second.eventually(heir, v1alpha1.ConditionReady, "False", v1alpha1.ReasonTargetClaimed)
		first.Expect(k8s.Delete(t.Context(), winner)).To(Succeed())
		first.gone(winner)
		second.eventually(heir, v1alpha1.ConditionReady, "True", v1alpha1.ReasonRetriesActive)
	})
}
