/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package model

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/deadletter"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

// Bodies tell the message from what the test itself puts beside it.
const (
	theMessage = "message"
	filler     = "filler"
	sentinel   = "sentinel"
)

// arrival is how long a copy may take to arrive; far more than any TTL of a scenario.
const arrival = 30 * time.Second

// client is one AMQP connection to the vhost of a scenario.
type client struct {
	conn *amqp.Connection
	ch   *amqp.Channel
	held map[string]*holder
}

// holder has what arrives in a queue in hand, unacknowledged, where no TTL reaches it.
type holder struct {
	ch         *amqp.Channel
	deliveries <-chan amqp.Delivery
}

func dial(url string) (*client, error) {
	conn, err := amqp.Dial(url)
	if err != nil {
		return nil, err
	}
	c := &client{conn: conn, held: map[string]*holder{}}
	if c.ch, err = conn.Channel(); err == nil {
		err = c.ch.Confirm(false)
	}
	return c, err
}

// publish returns when the broker has taken the message on, or has refused it.
func (c *client) publish(ctx context.Context, exchange, key string, p amqp.Publishing) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, arrival)
	defer cancel()
	p.DeliveryMode = amqp.Persistent
	confirm, err := c.ch.PublishWithDeferredConfirmWithContext(ctx, exchange, key, false, false, p)
	if err != nil {
		return false, err
	}
	return confirm.WaitContext(ctx)
}

func (c *client) put(ctx context.Context, queue, body string) error {
	ok, err := c.publish(ctx, "", queue, amqp.Publishing{Body: []byte(body)})
	if err == nil && !ok {
		err = fmt.Errorf("%s refuses a %s", queue, body)
	}
	return err
}

func (c *client) send(ctx context.Context, p publication) error {
	headers := amqp.Table{}
	maps.Copy(headers, amqp.Table(p.headers))
	for name, keys := range map[string][]string{"CC": p.cc, "BCC": p.bcc} {
		var list []any
		for _, k := range keys {
			list = append(list, k)
		}
		if list != nil {
			headers[name] = list
		}
	}
	m := amqp.Publishing{Body: []byte(theMessage), Headers: headers}
	if p.expires {
		m.Expiration = "50"
	}
	ok, err := c.publish(ctx, p.exchange, p.key, m)
	if err == nil && ok == (p.refused != "") {
		err = fmt.Errorf("published: %t", ok)
	}
	return err
}

// hold takes into hand what arrives in the queue from now on.
func (c *client) hold(queue string) error {
	ch, err := c.conn.Channel()
	if err != nil {
		return err
	}
	deliveries, err := ch.Consume(queue, "holder", false, false, false, false, nil)
	c.held[queue] = &holder{ch: ch, deliveries: deliveries}
	return err
}

// take waits for n copies in the queue and keeps their consumer from getting more.
func (c *client) take(ctx context.Context, queue string, n int) ([]amqp.Delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, arrival)
	defer cancel()
	h := c.held[queue]
	var out []amqp.Delivery
	for len(out) < n {
		select {
		case d, ok := <-h.deliveries:
			if !ok {
				return out, fmt.Errorf("the channel of %s has closed", queue)
			}
			out = append(out, d)
		case <-ctx.Done():
			return out, fmt.Errorf("%d of %d copies arrive in %s", len(out), n, queue)
		}
	}
	if err := h.ch.Cancel("holder", false); err != nil {
		return out, err
	}
	for d := range h.deliveries { // closed by the cancel
		out = append(out, d)
	}
	return out, nil
}

// reject returns when the broker has let the copies in hand die. What has come back to the
// queue by then is left there.
func (c *client) reject(queue string, ds []amqp.Delivery) error {
	for i := range ds {
		if err := ds[i].Reject(false); err != nil {
			return err
		}
	}
	// The queue answers this after the rejections, which have no answer of their own.
	d, ok, err := c.held[queue].ch.Get(queue, false)
	if err != nil || !ok {
		return err
	}
	return d.Nack(false, true)
}

// exhaust gives back what is in hand until the broker has none of it left in the queue.
func (c *client) exhaust(queue string, ds []amqp.Delivery) error {
	ch := c.held[queue].ch
	for i := range ds {
		if err := ds[i].Reject(true); err != nil {
			return err
		}
	}
	for range 100 {
		d, ok, err := ch.Get(queue, false)
		if err != nil || !ok {
			return err
		}
		if err := d.Reject(true); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s has no delivery limit", queue)
}

// ready is the number of messages that nobody has in hand.
func (c *client) ready(queue string) (int, error) {
	q, err := c.ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	return q.Messages, err
}

func (c *client) waitReady(ctx context.Context, queue string, n int) error {
	ctx, cancel := context.WithTimeout(ctx, arrival)
	defer cancel()
	last := -1
	err := sandbox.Poll(ctx, 20*time.Millisecond, func() (bool, error) {
		var err error
		last, err = c.ready(queue)
		return last == n, err
	})
	if err != nil {
		return fmt.Errorf("%s has %d messages, want %d: %w", queue, last, n, err)
	}
	return nil
}

// crowd pushes n copies out of a bounded queue by as many newer messages as it holds.
func (c *client) crowd(ctx context.Context, queue string, n, limit int) error {
	if err := c.waitReady(ctx, queue, n); err != nil {
		return err
	}
	return c.fill(ctx, queue, limit)
}

func (c *client) fill(ctx context.Context, queue string, limit int) error {
	for range limit {
		if err := c.put(ctx, queue, filler); err != nil {
			return err
		}
	}
	return nil
}

// clear takes the fillers out again, as many as the queue holds.
func (c *client) clear(queue string, limit int) error {
	found, err := c.drain(queue, "")
	if err == nil && (found.fillers != limit || len(found.copies) > 0) {
		err = fmt.Errorf("bounded queue %s holds %d fillers, want %d, and %d copies", queue, found.fillers, limit, len(found.copies))
	}
	return err
}

type content struct {
	copies  []deadletter.Message
	fillers int
	// ended is set when the last one was the sentinel.
	ended bool
}

// drain takes what is ready in the queue, up to a body.
func (c *client) drain(queue, until string) (content, error) {
	var found content
	for {
		d, ok, err := c.ch.Get(queue, true)
		if err != nil || !ok {
			return found, err
		}
		switch body := string(d.Body); body {
		case theMessage:
			found.copies = append(found.copies, received(d))
		case filler:
			found.fillers++
		}
		if string(d.Body) == until {
			found.ended = true
			return found, nil
		}
	}
}

// collect takes n copies out of the queue, and then what is there beyond, up to a sentinel
// that comes after all that the broker has sent to the queue by now.
func (c *client) collect(ctx context.Context, queue string, n int) ([]deadletter.Message, error) {
	var copies []deadletter.Message
	waiting, cancel := context.WithTimeout(ctx, arrival)
	defer cancel()
	err := sandbox.Poll(waiting, 20*time.Millisecond, func() (bool, error) {
		found, err := c.drain(queue, "")
		copies = append(copies, found.copies...)
		return len(copies) >= n, err
	})
	if err != nil && waiting.Err() == nil {
		return copies, err
	}
	// Fewer than expected is not an error here: the comparison shows it.
	if err := c.put(ctx, queue, sentinel); err != nil {
		return copies, err
	}
	ending, stop := context.WithTimeout(ctx, arrival)
	defer stop()
	err = sandbox.Poll(ending, 5*time.Millisecond, func() (bool, error) {
		found, err := c.drain(queue, sentinel)
		copies = append(copies, found.copies...)
		return found.ended, err
	})
	return copies, err
}

// received is a delivery in the model's terms.
func received(d amqp.Delivery) deadletter.Message {
	m := deadletter.Message{Exchange: d.Exchange, Keys: []string{d.RoutingKey}, Headers: topology.Args{}}
	for k, v := range d.Headers {
		switch k {
		case "CC", "x-delivery-count", "x-acquired-count":
		case "x-death":
			m.Deaths = deaths(v)
		default:
			m.Headers[k] = v
		}
	}
	return m
}

func deaths(header any) []deadletter.Death {
	entries, _ := header.([]any)
	var out []deadletter.Death
	for _, e := range entries {
		entry, _ := e.(amqp.Table)
		queue, _ := entry["queue"].(string)
		reason, _ := entry["reason"].(string)
		out = append(out, deadletter.Death{Queue: strings.Clone(queue), Reason: deadletter.Reason(reason)})
	}
	return out
}
