/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

// Package deadletter is a model of what RabbitMQ does to a message in a given topology:
// where an exchange routes it, where it goes when it dies in a queue, and when it is
// dropped without a trace. It is pure. The tests hold it against real brokers.
package deadletter

import (
	"maps"
	"slices"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// Reason is why a message dies in a queue, in RabbitMQ's words.
type Reason string

// The reasons that RabbitMQ knows.
const (
	Rejected      Reason = "rejected"
	Expired       Reason = "expired"
	MaxLen        Reason = "maxlen"
	DeliveryLimit Reason = "delivery_limit"
)

// Automatic are the deaths that happen without a consumer's word.
var Automatic = []Reason{Expired, MaxLen, DeliveryLimit}

// Death is one entry of a message's x-death header.
type Death struct {
	Queue  string
	Reason Reason
}

// Message is the part of a message that RabbitMQ routes by.
type Message struct {
	// Exchange is the one that delivered this copy.
	Exchange string
	Keys     []string
	Headers  topology.Args
	// Deaths are the entries of x-death, the most recent first.
	Deaths []Death
}

// Publish is a message as a client sends it.
func Publish(exchange, key string, headers topology.Args) Message {
	return Message{Exchange: exchange, Keys: []string{key}, Headers: maps.Clone(headers)}
}

// died returns the message as it leaves a queue: the broker writes down its death before
// it routes, over whatever a client may have put there.
func (m Message) died(queue string, reason Reason) Message {
	d := Death{Queue: queue, Reason: reason}
	deaths := slices.DeleteFunc(slices.Clone(m.Deaths), func(o Death) bool { return o == d })
	headers := maps.Clone(m.Headers)
	if headers == nil {
		headers = topology.Args{}
	}
	if len(m.Deaths) == 0 {
		stamp(headers, "first", d, m.Exchange)
	}
	stamp(headers, "last", d, m.Exchange)
	return Message{Exchange: m.Exchange, Keys: m.Keys, Headers: headers, Deaths: append([]Death{d}, deaths...)}
}

func stamp(headers topology.Args, which string, d Death, exchange string) {
	headers["x-"+which+"-death-queue"] = d.Queue
	headers["x-"+which+"-death-reason"] = string(d.Reason)
	headers["x-"+which+"-death-exchange"] = exchange
}

// returns reports a cycle that RabbitMQ breaks by dropping the message: it has died in
// the queue before, and nothing since then, nor that death itself, was a rejection.
func (m Message) returns(queue string) bool {
	for _, d := range m.Deaths {
		if d.Reason == Rejected {
			return false
		}
		if d.Queue == queue {
			return true
		}
	}
	return false
}
