/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package deadletter_test

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/deadletter"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// TestEveryMessageIsAcknowledgedOrParked: whatever a consumer and the queue's settings do
// to a message, and whatever the message has been through before, it is at each moment in
// one queue of the ladder, is rejected at most maxAttempts times, and comes back to the
// consumer as it was published.
func TestEveryMessageIsAcknowledgedOrParked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, observed := drawLadder(t)
		top := rapid.SampledFrom([]topology.Topology{observed, unseen(observed)}).Draw(t, "topology")
		s := simulation{ladder: l, topology: top, message: drawMessage(t, l)}
		published := s.message
		for s.place = target; s.place == target; {
			s.consume(t)
			s.wait(t)
			s.unchanged(t, published)
		}
		switch {
		case s.place == acknowledged:
		case s.place != parkingLot:
			t.Fatalf("ends in %q", s.place)
		case s.automatic == 0 && s.rejections != l.Request.MaxAttempts:
			t.Fatalf("parked after %d rejections, want %d", s.rejections, l.Request.MaxAttempts)
		}
	})
}

const acknowledged = "(acknowledged)"

type simulation struct {
	ladder     topology.Ladder
	topology   topology.Topology
	place      string
	message    deadletter.Message
	rejections int
	automatic  int
}

// drawMessage draws one that may hold forged headers, and may have died in queues of the
// ladder before, as one does that a broker's own shovel has moved back.
func drawMessage(t *rapid.T, l topology.Ladder) deadletter.Message {
	queues := []string{target, "elsewhere"}
	exchanges := []string{"", "shop", l.DeadLetterExchange}
	for _, tier := range l.Tiers {
		queues, exchanges = append(queues, tier.Queue), append(exchanges, tier.Return)
	}
	reasons := []string{"rejected", "expired", "maxlen", "delivery_limit"}
	headers := rapid.MapOfN(
		rapid.SampledFrom([]string{"color", "x-last-death-reason", "x-last-death-exchange", "x-first-death-exchange"}),
		rapid.SampledFrom(append(slices.Clone(reasons), exchanges...)), 0, 4).Draw(t, "headers")
	m := deadletter.Publish(rapid.SampledFrom([]string{"", "shop"}).Draw(t, "exchange"), rapid.String().Draw(t, "key"), nil)
	m.Headers = topology.Args{}
	for k, v := range headers {
		m.Headers[k] = v
	}
	m.Deaths = rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) deadletter.Death {
		return deadletter.Death{
			Queue:  rapid.SampledFrom(queues).Draw(t, "queue"),
			Reason: deadletter.Reason(rapid.SampledFrom(reasons).Draw(t, "reason")),
		}
	}), 0, 4, func(d deadletter.Death) deadletter.Death { return d }).Draw(t, "earlier deaths")
	return m
}

// consume does to the message in the target what a consumer or the queue can do.
func (s *simulation) consume(t *rapid.T) {
	what := rapid.SampledFrom([]string{"ack", "rejected", "rejected", "rejected", "rejected", "expired", "maxlen", "delivery_limit"}).Draw(t, "what")
	if what == "ack" {
		s.place = acknowledged
		return
	}
	if reason := deadletter.Reason(what); reason == rejected {
		s.rejections++
	} else {
		s.automatic++
	}
	if s.rejections > s.ladder.Request.MaxAttempts {
		t.Fatalf("delivered again after %d rejections", s.rejections-1)
	}
	s.die(t, deadletter.Reason(what))
}

// wait lets the message expire in a tier.
func (s *simulation) wait(t *rapid.T) {
	isTier := func(tier topology.Tier) bool { return tier.Queue == s.place }
	if i := slices.IndexFunc(s.ladder.Tiers, isTier); i >= 0 {
		if i+1 != s.rejections {
			t.Fatalf("waits in tier %d after %d rejections", i+1, s.rejections)
		}
		s.die(t, expired)
		if s.place != target {
			t.Fatalf("leaves tier %d for %q", i+1, s.place)
		}
	}
}

func (s *simulation) die(t *rapid.T, reason deadletter.Reason) {
	fate := deadletter.Die(s.topology, s.place, s.message, reason)
	if len(fate.Deliveries) != 1 || fate.Loss != "" || fate.Stalled {
		t.Fatalf("%s in %q: arrives in %q, loss %q, stalled %t", reason, s.place, fate.Queues(), fate.Loss, fate.Stalled)
	}
	s.place, s.message = fate.Deliveries[0].Queue, fate.Deliveries[0].Message
}

// unchanged: the broker adds its headers and changes nothing else.
func (s *simulation) unchanged(t *rapid.T, published deadletter.Message) {
	if !slices.Equal(s.message.Keys, published.Keys) {
		t.Fatalf("published with keys %q, has %q", published.Keys, s.message.Keys)
	}
	if own, before := ownHeaders(s.message), ownHeaders(published); !own.Equal(before) {
		t.Fatalf("published with headers %v, has %v", before, own)
	}
}

func ownHeaders(m deadletter.Message) topology.Args {
	out := maps.Clone(m.Headers)
	maps.DeleteFunc(out, func(k string, _ any) bool { return k != "color" })
	return out
}
