/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package main

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// delivered is what a broker that changes nothing makes of a publishing.
func delivered(key string, p amqp.Publishing) amqp.Delivery {
	return amqp.Delivery{
		RoutingKey: key, Headers: p.Headers, Body: p.Body,
		ContentType: p.ContentType, ContentEncoding: p.ContentEncoding, DeliveryMode: p.DeliveryMode,
		Priority: p.Priority, CorrelationId: p.CorrelationId, ReplyTo: p.ReplyTo, Expiration: p.Expiration,
		MessageId: p.MessageId, Type: p.Type, UserId: p.UserId, AppId: p.AppId,
	}
}

func TestWhatIsPublishedIsReadTheSame(t *testing.T) {
	for _, m := range writeScript("run-1", 12) {
		a := arrivalOf(delivered(m.Content.RoutingKey, publishing(m.Content)), "orders")
		if got := differences(m.Content, a.Content); len(got) > 0 {
			t.Errorf("%s: %v", m.ID, got)
		}
		if a.ID != m.ID || a.BrokerAttempt != 1 {
			t.Errorf("%s: %q at attempt %d", m.ID, a.ID, a.BrokerAttempt)
		}
	}
}

func TestAChangedPropertyIsSeen(t *testing.T) {
	m := writeScript("run-1", 1)[0]
	for name, change := range map[string]func(*amqp.Delivery){
		"app id":           func(d *amqp.Delivery) { d.AppId = "other" },
		"content encoding": func(d *amqp.Delivery) { d.ContentEncoding = "gzip" },
		"content type":     func(d *amqp.Delivery) { d.ContentType = "" },
		"correlation id":   func(d *amqp.Delivery) { d.CorrelationId = "" },
		"delivery mode":    func(d *amqp.Delivery) { d.DeliveryMode = 1 },
		"expiration":       func(d *amqp.Delivery) { d.Expiration = "1" },
		"message id":       func(d *amqp.Delivery) { d.MessageId = "" },
		"priority":         func(d *amqp.Delivery) { d.Priority = 1 },
		"reply to":         func(d *amqp.Delivery) { d.ReplyTo = "q" },
		"type":             func(d *amqp.Delivery) { d.Type = "" },
		"user id":          func(d *amqp.Delivery) { d.UserId = "guest" },
	} {
		d := delivered(m.Content.RoutingKey, publishing(m.Content))
		change(&d)
		if got := differences(m.Content, arrivalOf(d, "orders").Content); len(got) != 1 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestOnlyRejectionsFromTheQueueCount(t *testing.T) {
	d := amqp.Delivery{Headers: amqp.Table{"x-death": []any{
		amqp.Table{"queue": "orders.retry.2.2s", "reason": "expired", "count": int64(1)},
		amqp.Table{"queue": "orders", "reason": "rejected", "count": int64(2)},
		amqp.Table{"queue": "orders", "reason": "expired", "count": int64(5)},
		amqp.Table{"queue": "other", "reason": "rejected", "count": int64(7)},
		"no table",
	}}}
	if got := arrivalOf(d, "orders").BrokerAttempt; got != 3 {
		t.Errorf("attempt %d, want 3", got)
	}
}
