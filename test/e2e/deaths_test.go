/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package e2e

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
)

// death is a way to die other than by rejection.
type death struct {
	reason string
	// types are the targets that can die this way.
	types []string
	// arguments of the target that make it happen.
	arguments amqp.Table
	// expiration of each message, in milliseconds.
	expiration string
	// kill does to the messages in the target what ends them; nil just waits.
	kill func(w *world)
	// survivors are messages that stay in the target.
	survivors int
}

const (
	doomed              = 20
	rejectAndDeadLetter = "reject-publish-dlx"
)

var deaths = map[string]death{
	"the queue's message TTL": {
		reason: "expired", types: []string{"classic", "quorum"},
		arguments: amqp.Table{"x-message-ttl": int32(1500)},
	},
	"the publisher's expiration": {
		reason: "expired", types: []string{"classic", "quorum"},
		expiration: "1500",
	},
	"overflow that drops the oldest": {
		reason: "maxlen", types: []string{"classic", "quorum"},
		arguments: amqp.Table{"x-max-length": int32(5), "x-overflow": "drop-head"},
		survivors: 5,
	},
	"overflow that rejects and dead-letters": {
		reason: "maxlen", types: []string{"classic"},
		arguments: amqp.Table{"x-max-length": int32(5), "x-overflow": rejectAndDeadLetter},
		survivors: 5,
	},
	"the delivery limit": {
		reason: "delivery_limit", types: []string{"quorum"},
		arguments: amqp.Table{"x-delivery-limit": int32(3)},
		kill:      requeueUntilGone,
	},
	"a consumer that keeps crashing": {
		reason: "delivery_limit", types: []string{"quorum"},
		arguments: amqp.Table{"x-delivery-limit": int32(3)},
		kill:      crashUntilGone,
	},
}

func TestOtherDeathsEndInTheParkingLot(t *testing.T) {
	t.Parallel()
	for name, d := range deaths {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachTarget(t, func(t *testing.T, w *world, queueType string) {
				if !slices.Contains(d.types, queueType) {
					t.Skipf("a %s queue knows no such death", queueType)
				}
				w.declare("orders", queueType, d.arguments)
				p := w.policy("orders", "orders", 3, 200*time.Millisecond, 200*time.Millisecond)
				w.create(p)
				w.Eventually(func() string { return w.policyOf("orders") }).ShouldNot(BeEmpty(), func() string { return w.describe(p) })
				ids := w.publishDoomed(d.expiration)
				if d.kill != nil {
					d.kill(w)
				}
				w.expectParked(ids, d)
			})
		})
	}
}

func TestOtherDeathsAfterARejectionEndInTheParkingLot(t *testing.T) {
	t.Parallel()
	for name, d := range deaths {
		if d.expiration != "" || d.arguments["x-overflow"] == rejectAndDeadLetter {
			continue // RabbitMQ takes a message's expiration off at its first death; the other is told below
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachTarget(t, func(t *testing.T, w *world, queueType string) {
				if !slices.Contains(d.types, queueType) {
					t.Skipf("a %s queue knows no such death", queueType)
				}
				w.declare("orders", queueType, d.arguments)
				p := w.policy("orders", "orders", 3, 2*time.Second, 2*time.Second)
				w.create(p)
				w.Eventually(func() string { return w.policyOf("orders") }).ShouldNot(BeEmpty(), func() string { return w.describe(p) })
				ids := w.publishAndReject()
				if d.kill != nil {
					d.kill(w)
				}
				w.expectParked(ids, d)
			})
		})
	}
}

// TestReturningToAFullQueueThatDeadLettersRefusals: the target refuses what comes back and
// dead-letters it at the same time. The tier keeps it, since it was refused, so a copy is
// parked; nothing is lost, and the status names the setting.
func TestReturningToAFullQueueThatDeadLettersRefusals(t *testing.T) {
	t.Parallel()
	eachBroker(t, func(t *testing.T, version string) {
		w := newWorld(t, version)
		w.declare("orders", "classic", amqp.Table{"x-max-length": int32(5), "x-overflow": rejectAndDeadLetter})
		p := w.policy("orders", "orders", 3, 2*time.Second, 2*time.Second)
		w.ready(p)
		w.eventually(p, v1alpha1.ConditionDeadLetteringSafe, "False", v1alpha1.ReasonTargetHasOverflow)
		ids := w.publishAndReject()
		w.Eventually(func() int { return w.readyIn("orders") + w.readyIn("orders.parked") }).Should(BeNumerically(">=", len(ids)))
		found := map[string]bool{}
		ch := w.channel()
		for _, queue := range []string{"orders", "orders.parked"} {
			for range w.readyIn(queue) {
				d, ok, err := ch.Get(queue, false)
				w.Expect(err).NotTo(HaveOccurred())
				if ok {
					found[d.MessageId] = true
				}
			}
		}
		w.Expect(found).To(Equal(ids))
	})
}

// readyIn is the number of messages that are ready in a queue at this moment.
func (w *world) readyIn(queue string) int {
	q, err := w.channel().QueueDeclarePassive(queue, true, false, false, false, nil)
	w.Expect(err).NotTo(HaveOccurred())
	return q.Messages
}

// policyOf is the name of the policy in effect on a queue.
func (w *world) policyOf(queue string) string {
	for _, q := range w.mgmt.list(w.t, path("queues", w.vhost)) {
		if q["name"] == queue {
			name, _ := q["policy"].(string)
			return name
		}
	}
	return ""
}

// publishDoomed sends messages straight to the target.
func (w *world) publishDoomed(expiration string) map[string]bool {
	w.t.Helper()
	ch := w.channel()
	w.Expect(ch.Confirm(false)).To(Succeed())
	ids := map[string]bool{}
	for i := range doomed {
		id := string(rune('a' + i))
		ids[id] = true
		c, err := ch.PublishWithDeferredConfirm("", "orders", true, false,
			amqp.Publishing{MessageId: id, DeliveryMode: amqp.Persistent, Expiration: expiration})
		w.Expect(err).NotTo(HaveOccurred())
		_, err = c.WaitContext(w.t.Context())
		w.Expect(err).NotTo(HaveOccurred())
	}
	return ids
}

// publishAndReject sends messages one at a time and rejects each once, so that all have
// one attempt behind them and none has died otherwise. What comes back meanwhile is held,
// and returned to the queue at the end.
func (w *world) publishAndReject() map[string]bool {
	w.t.Helper()
	ch := w.channel()
	w.Expect(ch.Confirm(false)).To(Succeed())
	deliveries, err := ch.Consume("orders", "once", false, false, false, false, nil)
	w.Expect(err).NotTo(HaveOccurred())
	ids := map[string]bool{}
	for i := range doomed {
		id := string(rune('a' + i))
		err := ch.Publish("", "orders", true, false, amqp.Publishing{MessageId: id, DeliveryMode: amqp.Persistent})
		w.Expect(err).NotTo(HaveOccurred())
		w.Eventually(func() string {
			var d amqp.Delivery
			w.Eventually(deliveries).Should(Receive(&d))
			if !ids[d.MessageId] {
				ids[d.MessageId] = true
				w.Expect(d.Reject(false)).To(Succeed())
			}
			return d.MessageId
		}).Should(Equal(id))
	}
	w.Expect(ch.Close()).To(Succeed())
	return ids
}

// requeueUntilGone returns what it gets until nothing is left to get.
func requeueUntilGone(w *world) {
	ch := w.channel()
	deliveries, err := ch.Consume("orders", "", false, false, false, false, nil)
	w.Expect(err).NotTo(HaveOccurred())
	go func() {
		for d := range deliveries {
			_ = d.Reject(true)
		}
	}()
}

// crashUntilGone takes messages and loses the connection, again and again.
func crashUntilGone(w *world) {
	w.Eventually(func() bool {
		conn, err := amqp.Dial(w.broker.AMQPURL(w.vhost))
		w.Expect(err).NotTo(HaveOccurred())
		defer func() { _ = conn.Close() }()
		ch, err := conn.Channel()
		w.Expect(err).NotTo(HaveOccurred())
		for {
			_, ok, err := ch.Get("orders", false)
			w.Expect(err).NotTo(HaveOccurred())
			if !ok {
				break
			}
		}
		parked, err := ch.QueueDeclarePassive("orders.parked", true, false, false, false, nil)
		w.Expect(err).NotTo(HaveOccurred())
		return parked.Messages == doomed
	}).Should(BeTrue(), "the parking lot has not got every message")
}

// expectParked waits until all but the survivors are parked with the right reason, and
// nothing is anywhere else.
func (w *world) expectParked(ids map[string]bool, d death) {
	w.t.Helper()
	parked := len(ids) - d.survivors
	w.Eventually(func() map[string]int {
		left := map[string]int{}
		for q, depth := range w.depths() {
			if depth != 0 {
				left[q] = depth
			}
		}
		return left
	}).Should(Equal(expectedDepths(parked, d.survivors)))
	for id, m := range w.drain("orders.parked", parked) {
		w.Expect(ids).To(HaveKey(id))
		w.Expect(m.Headers["x-last-death-reason"]).To(Equal(d.reason), id)
	}
}

func expectedDepths(parked, survivors int) map[string]int {
	out := map[string]int{"orders.parked": parked}
	if survivors > 0 {
		out["orders"] = survivors
	}
	return out
}
