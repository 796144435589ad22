/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Names in the broker. The queue and its parking lot are those of config/samples.
const (
	targetQueue = "orders"
	parkingLot  = "orders.parked"
	topicShop   = "shop"
	topicKey    = "order.#"
)

const (
	dialTimeout  = 10 * time.Second
	closeTimeout = 2 * time.Second
	prefetch     = 5
	depthEvery   = 200 * time.Millisecond
)

// bus is the demo's AMQP connection.
type bus struct{ conn *amqp.Connection }

// dial connects. The connection closes when ctx ends, and with it whatever waits for the broker.
func dial(ctx context.Context, url string) (*bus, error) {
	conn, err := amqp.DialConfig(url, amqp.Config{
		Properties: amqp.Table{"connection_name": "rabbitmq-retry-operator demo"},
		Dial: func(network, address string) (net.Conn, error) {
			c, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return c, c.SetDeadline(time.Now().Add(dialTimeout)) // of the handshake; the client lifts it
		},
	})
	if err != nil {
		return nil, fmt.Errorf("connect to the broker over AMQP: %w", err)
	}
	b := &bus{conn}
	context.AfterFunc(ctx, b.close)
	return b, nil
}

func (b *bus) close() { _ = b.conn.CloseDeadline(time.Now().Add(closeTimeout)) }

// has asks for something in the broker, on a channel of its own since a no closes it.
func (b *bus) has(ask func(*amqp.Channel) error) (bool, error) {
	ch, err := b.conn.Channel()
	if err != nil {
		return false, fmt.Errorf("open a channel: %w", err)
	}
	err = ask(ch)
	var refusal *amqp.Error
	if errors.As(err, &refusal) && refusal.Code == amqp.NotFound {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask the broker what is there: %w", err)
	}
	return true, ch.Close()
}

func (b *bus) hasQueue(name string) (bool, error) {
	return b.has(func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		return err
	})
}

func (b *bus) hasExchange(name string) (bool, error) {
	return b.has(func(ch *amqp.Channel) error {
		return ch.ExchangeDeclarePassive(name, amqp.ExchangeTopic, true, false, false, false, nil)
	})
}

// remove deletes queues, unless someone else has messages in them, and exchanges.
func (b *bus) remove(queues, exchanges []string) error {
	ch, err := b.conn.Channel()
	if err != nil {
		return fmt.Errorf("open a channel: %w", err)
	}
	for _, queue := range queues {
		there, err := b.hasQueue(queue)
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		if _, err := b.clear([]string{queue}); err != nil {
			return err
		}
		if _, err := ch.QueueDelete(queue, false, false, false); err != nil {
			return fmt.Errorf("delete the queue %s: %w", queue, err)
		}
	}
	for _, exchange := range exchanges {
		if err := ch.ExchangeDelete(exchange, false, false); err != nil {
			return fmt.Errorf("delete the exchange %s: %w", exchange, err)
		}
	}
	return ch.Close()
}

// declare makes the queue and the exchange, as their owner would, and binds them.
func (b *bus) declare() error {
	ch, err := b.conn.Channel()
	if err != nil {
		return fmt.Errorf("open a channel: %w", err)
	}
	q, err := ch.QueueDeclare(targetQueue, true, false, false, false, amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeQuorum})
	if err != nil {
		return fmt.Errorf("declare the queue %s: %w", targetQueue, err)
	}
	if q.Consumers > 0 {
		return fmt.Errorf("the queue %s has %d consumers already, which would take the demo's messages: end them first", targetQueue, q.Consumers)
	}
	if err := ch.ExchangeDeclare(topicShop, amqp.ExchangeTopic, true, false, false, false, nil); err != nil {
		return fmt.Errorf("declare the exchange %s: %w", topicShop, err)
	}
	if err := ch.QueueBind(targetQueue, topicKey, topicShop, false, nil); err != nil {
		return fmt.Errorf("bind the queue %s: %w", targetQueue, err)
	}
	return ch.Close()
}

// clear deletes what an earlier demo left in the queues. Where it finds a message of
// someone else it stops, and returns that message to its queue.
func (b *bus) clear(queues []string) (int, error) {
	ch, err := b.conn.Channel()
	if err != nil {
		return 0, fmt.Errorf("open a channel: %w", err)
	}
	deleted := 0
	for _, queue := range queues {
		for {
			d, found, err := ch.Get(queue, false)
			if err != nil {
				return deleted, fmt.Errorf("look into %s: %w", queue, err)
			}
			if !found {
				break
			}
			if d.AppId != appID {
				return deleted, errors.Join(
					fmt.Errorf("the queue %s holds messages that no demo has published: the demo leaves them alone, and needs it empty", queue),
					d.Reject(true))
			}
			if err := d.Ack(false); err != nil {
				return deleted, fmt.Errorf("delete a message of an earlier demo from %s: %w", queue, err)
			}
			deleted++
		}
	}
	return deleted, ch.Close()
}

// confirms is what the broker said to the publisher.
type confirms struct {
	confirmed, returned int
	err                 error
}

// publish sends the script to the exchange, a message every interval, and waits for the
// broker's confirmations.
func (b *bus) publish(ctx context.Context, script []message, every time.Duration) confirms {
	ch, err := b.conn.Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	if err != nil {
		return confirms{err: fmt.Errorf("open a channel with confirms: %w", err)}
	}
	returns := ch.NotifyReturn(make(chan amqp.Return, len(script)))
	var sent []*amqp.DeferredConfirmation
	for i, m := range script {
		if i > 0 {
			if err := sleep(ctx, every); err != nil {
				return confirms{err: err}
			}
		}
		c, err := ch.PublishWithDeferredConfirmWithContext(ctx, topicShop, m.Content.RoutingKey, true, false, publishing(m.Content))
		if err != nil {
			return confirms{err: fmt.Errorf("publish %s: %w", m.ID, err)}
		}
		sent = append(sent, c)
	}
	result := confirms{}
	for i, c := range sent {
		ok, err := c.WaitContext(ctx)
		if err != nil {
			return confirms{err: fmt.Errorf("wait for the confirmation of %s: %w", script[i].ID, err)}
		}
		if ok {
			result.confirmed++
		}
	}
	// A return comes before its confirmation.
	result.returned = len(returns)
	result.err = ch.Close()
	return result
}

// incoming is a delivery with the time when it came in.
type incoming struct {
	amqp.Delivery
	at time.Duration
}

// consume returns the deliveries of the queue, each with its time since start. The
// channel closes with the connection.
func (b *bus) consume(ctx context.Context, start time.Time) (<-chan incoming, error) {
	ch, err := b.conn.Channel()
	if err == nil {
		err = ch.Qos(prefetch, 0, false)
	}
	if err != nil {
		return nil, fmt.Errorf("open a channel: %w", err)
	}
	deliveries, err := ch.ConsumeWithContext(ctx, targetQueue, "demo", false, false, false, false, nil)
	if err != nil {
		return nil, fmt.Errorf("consume from %s: %w", targetQueue, err)
	}
	in := make(chan incoming, prefetch)
	go func() {
		defer close(in)
		for d := range deliveries {
			in <- incoming{d, time.Since(start)}
		}
	}()
	return in, nil
}

// watch sends the depths of the queues again and again until ctx ends.
func (b *bus) watch(ctx context.Context, queues []string) <-chan map[string]int {
	out := make(chan map[string]int)
	go func() {
		defer close(out)
		g := &gauge{conn: b.conn}
		defer g.close()
		for {
			select {
			case out <- g.depths(queues):
			case <-ctx.Done():
				return
			}
			if sleep(ctx, depthEvery) != nil {
				return
			}
		}
	}()
	return out
}

// depths reads the depths of the queues once.
func (b *bus) depths(queues []string) map[string]int {
	g := &gauge{conn: b.conn}
	defer g.close()
	return g.depths(queues)
}

// gauge reads depths on one channel, which it opens anew when the broker closes it. It is
// for one goroutine.
type gauge struct {
	conn *amqp.Connection
	ch   *amqp.Channel
}

// depths asks the queues themselves, since the management API's numbers are seconds old.
// A queue that does not answer is absent.
func (g *gauge) depths(queues []string) map[string]int {
	depths := map[string]int{}
	for _, queue := range queues {
		if g.ch == nil || g.ch.IsClosed() {
			ch, err := g.conn.Channel()
			if err != nil {
				return depths
			}
			g.ch = ch
		}
		// The broker compares nothing but the name when a queue is declared passively.
		if q, err := g.ch.QueueDeclarePassive(queue, true, false, false, false, nil); err == nil {
			depths[queue] = q.Messages
		}
	}
	return depths
}

func (g *gauge) close() {
	if g.ch != nil {
		_ = g.ch.Close() // closed already where the broker has refused
	}
}

// browse reads the parking lot and leaves it as it is.
func (b *bus) browse(queue, target string) ([]arrival, error) {
	ch, err := b.conn.Channel()
	if err != nil {
		return nil, fmt.Errorf("open a channel: %w", err)
	}
	var all []arrival
	for {
		d, found, err := ch.Get(queue, false)
		if err != nil {
			return nil, fmt.Errorf("look into %s: %w", queue, err)
		}
		if !found {
			return all, ch.Close() // which returns them to the queue
		}
		all = append(all, arrivalOf(d, target))
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
