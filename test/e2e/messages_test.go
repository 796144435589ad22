/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package e2e

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/gomega"
	amqp "github.com/rabbitmq/amqp091-go"
)

// sent is a message as it was published.
type sent struct {
	id, key, body string
	headers       amqp.Table
}

// publish sends n messages through an exchange, each with one of the routing keys, and
// waits for the broker's confirmation of each.
func (w *world) publish(exchange string, n int, keys ...string) map[string]sent {
	w.t.Helper()
	ch := w.channel()
	w.Expect(ch.Confirm(false)).To(Succeed())
	out := map[string]sent{}
	var confirmations []*amqp.DeferredConfirmation
	for i := range n {
		m := sent{
			id:      fmt.Sprintf("m%05d", i),
			key:     keys[i%len(keys)],
			body:    fmt.Sprintf(`{"order":%d}`, i),
			headers: amqp.Table{"tenant": fmt.Sprintf("t%d", i%7), "trace": int32(i)},
		}
		out[m.id] = m
		c, err := ch.PublishWithDeferredConfirm(exchange, m.key, true, false, amqp.Publishing{
			MessageId: m.id, Body: []byte(m.body), Headers: maps.Clone(m.headers),
			DeliveryMode: amqp.Persistent, ContentType: "application/json", CorrelationId: "c-" + m.id,
		})
		w.Expect(err).NotTo(HaveOccurred())
		confirmations = append(confirmations, c)
	}
	for _, c := range confirmations {
		acked, err := c.WaitContext(w.t.Context())
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(acked).To(BeTrue(), "the broker did not confirm a message")
	}
	return out
}

// delivery is one attempt as the consumer saw it.
type delivery struct {
	amqp.Delivery
	attempt int
	// waited is the time since the consumer rejected the attempt before.
	waited time.Duration
}

// consumer takes messages from a queue and remembers all that it saw.
type consumer struct {
	mu         sync.Mutex
	attempts   map[string]int
	rejectedAt map[string]time.Time
	seen       []delivery
}

// consume starts a consumer that acknowledges or rejects as decide says.
func (w *world) consume(queue string, decide func(id string, attempt int) (ack bool)) *consumer {
	w.t.Helper()
	c := &consumer{attempts: map[string]int{}, rejectedAt: map[string]time.Time{}}
	ch := w.channel()
	w.Expect(ch.Qos(100, 0, false)).To(Succeed())
	deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
	w.Expect(err).NotTo(HaveOccurred())
	go func() {
		for d := range deliveries {
			if c.note(d, decide) {
				_ = d.Ack(false)
			} else {
				_ = d.Reject(false)
			}
		}
	}()
	return c
}

func (c *consumer) note(d amqp.Delivery, decide func(string, int) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := d.MessageId
	c.attempts[id]++
	one := delivery{Delivery: d, attempt: c.attempts[id]}
	if at, ok := c.rejectedAt[id]; ok {
		one.waited = time.Since(at)
	}
	c.seen = append(c.seen, one)
	ack := decide(id, one.attempt)
	if !ack {
		c.rejectedAt[id] = time.Now()
	}
	return ack
}

func (c *consumer) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seen)
}

func (c *consumer) deliveries() []delivery {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]delivery(nil), c.seen...)
}

// userHeaders are a message's headers without what the broker adds.
func userHeaders(h amqp.Table) amqp.Table {
	out := amqp.Table{}
	for k, v := range h {
		if !strings.HasPrefix(k, "x-") {
			out[k] = v
		}
	}
	return out
}

// drain takes all messages out of a queue, by id, until it has n of them.
func (w *world) drain(queue string, n int) map[string]amqp.Delivery {
	w.t.Helper()
	out := map[string]amqp.Delivery{}
	ch := w.channel()
	w.Eventually(func() int {
		for {
			d, ok, err := ch.Get(queue, true)
			w.Expect(err).NotTo(HaveOccurred())
			if !ok {
				return len(out)
			}
			w.Expect(out).NotTo(HaveKey(d.MessageId), "parked twice")
			out[d.MessageId] = d
		}
	}).Should(Equal(n), "messages in "+queue)
	return out
}
