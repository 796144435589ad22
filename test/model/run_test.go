/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package model

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/deadletter"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// outcome is how a scenario went on one broker.
type outcome struct {
	vhost string
	world *world
	// differences between the model and the broker.
	differences []string
	err         error
}

func (o *outcome) differ(format string, args ...any) {
	o.differences = append(o.differences, fmt.Sprintf(format, args...))
}

// run is one scenario on one broker: the model and the broker go through the same history,
// step by step.
type run struct {
	scenario
	*outcome
	client *client
	due    []death
}

func (n *node) run(ctx context.Context, vhost string, s scenario) *outcome {
	o := &outcome{vhost: vhost}
	observed, err := n.prepare(ctx, vhost, s)
	if err != nil {
		o.err = fmt.Errorf("declare the topology: %w", err)
		return o
	}
	o.world = publish(unseen(observed), s.message)
	if s.message.none() {
		return o
	}
	c, err := dial(n.AMQPURL(vhost))
	if err != nil {
		o.err = err
		return o
	}
	r := run{scenario: s, outcome: o, client: c, due: s.history}
	o.err = errors.Join(r.walk(ctx), c.conn.Close())
	return o
}

// unseen is the topology without what the broker reports of its queues. The model has to
// find the policies in effect by itself: in its reports the broker is seconds behind with
// them, in what it does it is not.
func unseen(t topology.Topology) topology.Topology {
	c := t.Clone()
	for _, q := range t.Queues {
		q.State = nil
		c.AddQueue(q)
	}
	return c
}

func (r *run) walk(ctx context.Context) error {
	for _, q := range r.queues() {
		if err := r.hold(q); err != nil {
			return err
		}
	}
	if err := r.publish(ctx); err != nil {
		return err
	}
	for len(r.due) > 0 {
		if err := r.world.settle(r.due); err != nil {
			return err
		}
		if err := r.step(ctx); err != nil || len(r.differences) > 0 {
			return err
		}
	}
	if err := r.world.settle(nil); err != nil {
		return err
	}
	return r.compare(ctx)
}

func (r *run) queues() []string { return slices.Sorted(maps.Keys(r.world.topology.Queues)) }

func (r *run) publish(ctx context.Context) error {
	full := r.message.refused
	if full != "" {
		if err := r.client.fill(ctx, full, r.limit(full)); err != nil {
			return err
		}
	}
	if err := r.client.send(ctx, r.message); err != nil {
		return fmt.Errorf("publish the message: %w", err)
	}
	if full != "" {
		return r.client.clear(full, r.limit(full))
	}
	return nil
}

func (r *run) limit(queue string) int {
	limit := r.world.topology.SettingsOf(r.world.topology.Queues[queue]).MaxLength
	if limit == nil {
		return 0
	}
	return int(*limit)
}

// step lets the copies in one queue die, in the model and on the broker.
func (r *run) step(ctx context.Context) error {
	d := r.due[0]
	r.due = r.due[1:]
	copies := r.world.copies[d.queue]
	if len(copies) == 0 {
		return fmt.Errorf("the model has nothing in %s that could die there by %s; it has %v", d.queue, d.reason, r.world.copies)
	}
	if err := r.kill(ctx, d, copies); err != nil {
		return fmt.Errorf("%s in %s: %w", d.reason, d.queue, err)
	}
	r.world.kill(d.queue, d.reason)
	return r.hold(d.queue)
}

// hold takes into hand what will arrive in a queue, where it would expire before the next
// step.
func (r *run) hold(queue string) error {
	if !r.world.expires(queue) || !holds(r.due, queue) {
		return nil
	}
	return r.client.hold(queue)
}

func (r *run) kill(ctx context.Context, d death, copies []deadletter.Message) error {
	if d.reason == deadletter.MaxLen {
		limit := r.limit(d.queue)
		if err := r.client.crowd(ctx, d.queue, len(copies), limit); err != nil {
			return err
		}
		return r.client.clear(d.queue, limit)
	}
	if !r.world.expires(d.queue) {
		if err := r.client.hold(d.queue); err != nil {
			return err
		}
	}
	inHand, err := r.client.take(ctx, d.queue, len(copies))
	r.compareCopies(d.queue, copies, receivedAll(inHand))
	if err != nil {
		return err
	}
	if d.reason == deadletter.DeliveryLimit {
		return r.client.exhaust(d.queue, inHand)
	}
	return r.client.reject(d.queue, inHand)
}

func receivedAll(ds []amqp.Delivery) []deadletter.Message {
	var out []deadletter.Message
	for i := range ds {
		out = append(out, received(ds[i]))
	}
	return out
}

func (r *run) compareCopies(queue string, want, got []deadletter.Message) {
	wanted, seen := texts(want), texts(got)
	if slices.Equal(wanted, seen) {
		return
	}
	r.differ("in queue %s\nthe model has  %s\nthe broker has %s\nlosses in the model: %q",
		queue, strings.Join(wanted, "\n               "), strings.Join(seen, "\n               "), r.world.losses)
}

// compare looks into every queue. Twice, since what was under way between two queues at
// the first look is in one of them at the second.
func (r *run) compare(ctx context.Context) error {
	found := map[string][]deadletter.Message{}
	for range 2 {
		if err := r.waitExpired(ctx); err != nil {
			return err
		}
		for _, q := range r.queues() {
			if r.passing(q) {
				continue
			}
			copies, err := r.client.collect(ctx, q, len(r.world.copies[q])-len(found[q]))
			if err != nil {
				return fmt.Errorf("look into %s: %w", q, err)
			}
			found[q] = append(found[q], copies...)
		}
	}
	for _, q := range r.queues() {
		r.compareCopies(q, r.world.copies[q], found[q])
	}
	return nil
}

// passing reports that nothing stays in the queue.
func (r *run) passing(queue string) bool { return r.world.expires(queue) }

// waitExpired waits until the queues are empty in which nothing stays. A message with a
// TTL of its own leaves a queue without one.
func (r *run) waitExpired(ctx context.Context) error {
	for _, q := range r.queues() {
		if r.passing(q) || r.message.expires && len(r.world.copies[q]) == 0 {
			if err := r.client.waitReady(ctx, q, 0); err != nil {
				return err
			}
		}
	}
	return nil
}
