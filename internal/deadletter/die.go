/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package deadletter

import (
	"slices"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// Loss is why a dead letter reaches no queue.
type Loss string

// The ways for a dead letter to get nowhere.
const (
	// NoDeadLetterExchange: nothing says where the queue's dead letters go.
	NoDeadLetterExchange Loss = "no dead-letter exchange applies to the queue"
	// DeadLetterExchangeMissing: the exchange that should take them is not there.
	DeadLetterExchangeMissing Loss = "the dead-letter exchange does not exist"
	// Unroutable: no binding and no alternate exchange takes the message.
	Unroutable Loss = "no binding takes the message"
	// Cycle: every queue it is routed to has seen it before without a rejection since.
	Cycle Loss = "the message would return without a rejection, a cycle that RabbitMQ drops"
)

// Delivery is a copy of a message in a queue.
type Delivery struct {
	Queue   string
	Message Message
}

// Fate is what becomes of a message that dies.
type Fate struct {
	Deliveries []Delivery
	// Loss is set when there is none.
	Loss Loss
	// Stalled is set when the message is not lost but stays in its queue, as a pending dead
	// letter, until there is a way: at-least-once dead-lettering.
	Stalled bool
	Routing Routing
}

// Queues lists where the message arrived.
func (f Fate) Queues() []string {
	out := make([]string, 0, len(f.Deliveries))
	for _, d := range f.Deliveries {
		out = append(out, d.Queue)
	}
	return out
}

// Die lets a message die in a queue.
func Die(t topology.Topology, queue string, m Message, reason Reason) Fate {
	s := t.SettingsOf(t.Queues[queue])
	if s.DeadLetterExchange == nil {
		return Fate{Loss: NoDeadLetterExchange}
	}
	dead := m.died(queue, reason)
	dead.Exchange = *s.DeadLetterExchange
	if s.DeadLetterRoutingKey != nil {
		dead.Keys = []string{*s.DeadLetterRoutingKey}
	}
	f := Fate{Routing: Route(t, dead.Exchange, dead)}
	for _, q := range f.Routing.Queues {
		if reason == Rejected || !dead.returns(q) {
			f.Deliveries = append(f.Deliveries, Delivery{Queue: q, Message: dead})
		}
	}
	if len(f.Deliveries) == 0 {
		f.Loss = lossOf(f.Routing, dead.Exchange)
		f.Stalled = s.AtLeastOnce
	}
	return f
}

func lossOf(r Routing, exchange string) Loss {
	switch {
	case len(r.Queues) > 0:
		return Cycle
	case slices.Contains(r.Missing, exchange):
		return DeadLetterExchangeMissing
	}
	return Unroutable
}
