/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package model

import (
	"fmt"
	"maps"
	"slices"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/deadletter"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// scenario is a topology, a message, and what happens to it.
type scenario struct {
	name string
	// topology is declared as it is; with a ladder it is what is there before.
	topology topology.Topology
	ladder   *topology.Request
	// spoil changes a ladder once it is whole.
	spoil func(*spoiler)

	message publication
	// history is what is done to copies by hand. Whatever waits in a queue with a TTL and is
	// not due for one of these dies by itself.
	history []death
}

// publication is the message that is published.
type publication struct {
	exchange, key string
	headers       topology.Args
	cc, bcc       []string
	// expires gives the message itself a TTL, which RabbitMQ takes off at its first death.
	expires bool
	// refused: the queue of this name is full when the message comes.
	refused string
}

// death is the death of all copies in a queue, by the client's doing: a rejection,
// requeues up to the delivery limit, or newer messages in a bounded queue.
type death struct {
	queue  string
	reason deadletter.Reason
}

// byDelivery reports whether a consumer has to have the copies in hand.
func (d death) byDelivery() bool {
	return d.reason == deadletter.Rejected || d.reason == deadletter.DeliveryLimit
}

// none: without a message the scenario is about the policies in effect.
func (p publication) none() bool { return p.exchange == "" && p.key == "" }

// maxCopies bounds the copies that a scenario may make of the one message.
const maxCopies = 12

// world is where the model says that the copies are.
type world struct {
	topology topology.Topology
	copies   map[string][]deadletter.Message
	// stalled counts, by queue, what stays there as a pending dead letter.
	stalled map[string]int64
	// losses are what has been lost on the way, for the report.
	losses []string
	// first are the queues that the message itself has come to.
	first []string
}

func publish(t topology.Topology, p publication) *world {
	w := &world{topology: t, copies: map[string][]deadletter.Message{}, stalled: map[string]int64{}}
	m := deadletter.Publish(p.exchange, p.key, p.headers)
	m.Keys = slices.Concat(m.Keys, p.cc, p.bcc)
	for _, q := range deadletter.Route(t, p.exchange, m).Queues {
		w.copies[q] = append(w.copies[q], m)
		w.first = append(w.first, q)
	}
	if p.refused != "" {
		w.kill(p.refused, deadletter.MaxLen)
	}
	if p.expires {
		w.expireFirst()
	}
	return w
}

// expireFirst ends the copies of the publication alone: what comes to one of their queues
// from another has lost the TTL on its way.
func (w *world) expireFirst() {
	published := w.copies
	w.copies = map[string][]deadletter.Message{}
	for _, q := range w.first {
		for _, m := range published[q] {
			w.die(q, m, deadletter.Expired)
		}
		delete(published, q)
	}
	for q, ms := range published { // where a refusal has led
		w.copies[q] = append(w.copies[q], ms...)
	}
}

// kill lets all copies in a queue die.
func (w *world) kill(queue string, reason deadletter.Reason) {
	dying := w.copies[queue]
	delete(w.copies, queue)
	for _, m := range dying {
		w.die(queue, m, reason)
	}
}

func (w *world) die(queue string, m deadletter.Message, reason deadletter.Reason) {
	fate := deadletter.Die(w.topology, queue, m, reason)
	if fate.Stalled {
		w.stalled[queue]++
	}
	if fate.Loss != "" {
		w.losses = append(w.losses, fmt.Sprintf("%s in %s: %s", reason, queue, fate.Loss))
	}
	for _, d := range fate.Deliveries {
		w.copies[d.Queue] = append(w.copies[d.Queue], d.Message)
	}
}

// settle lets everything expire that nobody holds.
func (w *world) settle(due []death) error {
	for range 100 {
		moved := false
		for _, q := range slices.Sorted(maps.Keys(w.copies)) {
			if w.expires(q) && !holds(due, q) {
				w.kill(q, deadletter.Expired)
				moved = true
			}
		}
		if !moved || w.count() > maxCopies {
			break
		}
	}
	if n := w.count(); n > maxCopies {
		return fmt.Errorf("the model has %d copies", n)
	}
	return nil
}

func (w *world) count() int {
	n := 0
	for _, ms := range w.copies {
		n += len(ms)
	}
	return n
}

func (w *world) expires(queue string) bool {
	return w.topology.SettingsOf(w.topology.Queues[queue]).MessageTTL != nil
}

// holds reports whether the next death in the queue needs its copies in a consumer's hand,
// where no TTL reaches them.
func holds(due []death, queue string) bool {
	i := slices.IndexFunc(due, func(d death) bool { return d.queue == queue })
	return i >= 0 && due[i].byDelivery()
}

// text is a copy as it shows to a consumer: exchange, routing key, x-death and the other
// headers, those aside that the client library or RabbitMQ keep for themselves.
func text(m deadletter.Message) string {
	headers := ""
	for _, k := range slices.Sorted(maps.Keys(m.Headers)) {
		headers += fmt.Sprintf(" %s=%v", k, m.Headers[k])
	}
	return fmt.Sprintf("by exchange %q with key %q, deaths %v, headers%s", m.Exchange, m.Keys[0], m.Deaths, headers)
}

func texts(ms []deadletter.Message) []string {
	out := make([]string, 0, len(ms))
	for _, m := range ms {
		out = append(out, text(m))
	}
	slices.Sort(out)
	return out
}
