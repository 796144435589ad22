/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package e2e

import (
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
)

const messages = 1000

var (
	delays = []time.Duration{300 * time.Millisecond, 600 * time.Millisecond, 900 * time.Millisecond}
	keys   = []string{"order.created", "order.paid.eu", "order.shipped", "order.a.b.c", "order"}
)

// clockGrain is how much earlier than asked the broker may let a message go, since it
// counts in whole milliseconds.
const clockGrain = 2 * time.Millisecond

// ladder makes a target behind a topic exchange and a policy of four attempts on it.
func (w *world) ladder(queueType string) *v1alpha1.RetryPolicy {
	w.t.Helper()
	w.declare("orders", queueType, nil)
	ch := w.channel()
	w.Expect(ch.ExchangeDeclare("shop", "topic", true, false, false, false, nil)).To(Succeed())
	w.Expect(ch.QueueBind("orders", "order.#", "shop", false, nil)).To(Succeed())
	p := w.policy("orders", "orders", 4, delays...)
	w.ready(p)
	return p
}

func TestEveryRejectionClimbsTheLadderAndIsParked(t *testing.T) {
	t.Parallel()
	eachTarget(t, func(t *testing.T, w *world, queueType string) {
		p := w.ladder(queueType)
		published := w.publish("shop", messages, keys...)
		c := w.consume("orders", func(string, int) bool { return false })

		w.Eventually(c.count).Should(Equal(4 * messages))
		w.expectAsPublished(c, published)
		w.expectOnly("orders.parked", messages)
		w.expectStatus(p, messages)
		w.Expect(c.count()).To(Equal(4*messages), "deliveries after all was parked")

		for id, d := range w.drain("orders.parked", messages) {
			m := published[id]
			w.Expect(d.RoutingKey).To(Equal(m.key))
			w.Expect(string(d.Body)).To(Equal(m.body))
			w.Expect(userHeaders(d.Headers)).To(Equal(m.headers))
			w.Expect(d.Headers["x-last-death-reason"]).To(Equal("rejected"))
		}
	})
}

func TestAThirdThatSucceedsAtTheSecondAttemptIsNotParked(t *testing.T) {
	t.Parallel()
	eachTarget(t, func(t *testing.T, w *world, queueType string) {
		p := w.ladder(queueType)
		published := w.publish("shop", messages, keys...)
		succeeds := func(id string) bool {
			n, err := strconv.Atoi(strings.TrimPrefix(id, "m"))
			return err == nil && n%3 == 0
		}
		c := w.consume("orders", func(id string, attempt int) bool { return attempt == 2 && succeeds(id) })

		third := (messages + 2) / 3
		parked := messages - third
		w.Eventually(c.count).Should(Equal(2*third + 4*parked))
		w.expectAsPublished(c, published)
		w.expectOnly("orders.parked", parked)
		w.expectStatus(p, int64(parked))
		for id := range w.drain("orders.parked", parked) {
			w.Expect(succeeds(id)).To(BeFalse(), id+" was acknowledged and parked")
		}
	})
}

// expectAsPublished holds every delivery against the message as it was sent and the delay
// that its attempt asks for.
func (w *world) expectAsPublished(c *consumer, published map[string]sent) {
	w.t.Helper()
	for _, d := range c.deliveries() {
		m, ok := published[d.MessageId]
		w.Expect(ok).To(BeTrue(), "a message that nobody sent")
		w.Expect(d.RoutingKey).To(Equal(m.key))
		w.Expect(string(d.Body)).To(Equal(m.body))
		w.Expect(userHeaders(d.Headers)).To(Equal(m.headers))
		w.Expect(d.ContentType).To(Equal("application/json"))
		w.Expect(d.CorrelationId).To(Equal("c-" + m.id))
		w.Expect(d.DeliveryMode).To(Equal(amqp.Persistent))
		if d.attempt > 1 {
			w.Expect(d.waited).To(BeNumerically(">=", delays[d.attempt-2]-clockGrain), "%s attempt %d came early", m.id, d.attempt)
		}
	}
}

// expectOnly waits until one queue holds n messages and all others hold none, by the
// broker's own counts.
func (w *world) expectOnly(queue string, n int) {
	w.t.Helper()
	w.Eventually(func() map[string]int {
		left := map[string]int{}
		for q, depth := range w.depths() {
			if depth != 0 {
				left[q] = depth
			}
		}
		return left
	}).Should(Equal(map[string]int{queue: n}))
}

// expectStatus waits until the policy's status tells the same.
func (w *world) expectStatus(p *v1alpha1.RetryPolicy, parked int64) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		s := w.get(p).Status
		g.Expect(s.Parked.Messages).To(HaveValue(Equal(parked)))
		g.Expect(s.Retrying).To(HaveValue(BeZero()))
		g.Expect(s.Tiers).To(HaveLen(3))
		g.Expect(s.BrokerVersion).To(HavePrefix(w.broker.Version + "."))
	}).Should(Succeed())
}
