/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package model

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/deadletter"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// random makes scenarios that nobody has thought of. The same seed makes the same ones.
func random(seed uint64, n int) []scenario {
	out := make([]scenario, 0, n)
	for i := 0; len(out) < n; i++ {
		g := generator{rand.New(rand.NewPCG(seed, uint64(i)))}
		s := scenario{name: fmt.Sprintf("random %d of seed %d", i, seed), topology: g.topology(), message: g.message()}
		if s.history = g.history(s); s.history != nil {
			out = append(out, s)
		}
	}
	return out
}

type generator struct{ *rand.Rand }

func one[T any](g generator, of ...T) T { return of[g.IntN(len(of))] }

// chance is true in so many of a hundred cases.
func (g generator) chance(percent int) bool { return g.IntN(100) < percent }

var (
	randomExchanges = []string{"e0", "e1", "e2", "e3"}
	randomQueues    = []string{"q0", "q1", "q2", "q3", "q4"}
	randomKeys      = []string{"a", "a.b", "b", "q1", "q2"}
	randomPatterns  = []string{"a", "a.b", "a.*", "#", "*", "#.b", "q1", "q2"}
)

func (g generator) topology() topology.Topology {
	t := topology.New()
	for _, name := range randomExchanges {
		e := exchange(name, one(g, "fanout", "direct", "topic", "headers", "headers"))
		if g.chance(40) {
			e = withAlternate(name, e.Type, one(g, append(randomExchanges, "gone")...))
		}
		t.AddExchange(e)
	}
	for i, name := range randomQueues {
		g.addQueue(t, name, i)
	}
	for range 9 {
		t.Bind(g.binding(t))
	}
	if g.chance(30) {
		t.AddPolicy(policy("ae", "^"+one(g, randomExchanges...)+"$", 1, "exchanges", args{"alternate-exchange": one(g, randomExchanges...)}))
	}
	return t
}

func (g generator) addQueue(t topology.Topology, name string, i int) {
	q := classic(name, args{})
	if g.chance(50) {
		q = quorum(name, args{})
	}
	g.addDeadLetters(t, q)
	switch {
	case g.chance(35):
		q.Arguments["x-message-ttl"] = int64(100 + 10*i)
	case q.Type == topology.Quorum && g.chance(40):
		q.Arguments["x-delivery-limit"] = int64(2)
	case g.chance(40):
		q.Arguments["x-max-length"] = int64(maxCopies)
	}
	t.AddQueue(q)
}

// addDeadLetters says where dead letters go, by argument, by policy, or by both.
func (g generator) addDeadLetters(t topology.Topology, q topology.Queue) {
	found := args{}
	if g.chance(85) {
		found["dead-letter-exchange"] = one(g, append(randomExchanges, "", "gone")...)
		if g.chance(30) || found["dead-letter-exchange"] == "" {
			found["dead-letter-routing-key"] = one(g, append(randomKeys, randomQueues...)...)
		}
		if q.Type == topology.Quorum && g.chance(40) {
			found["dead-letter-strategy"], found["overflow"] = "at-least-once", "reject-publish"
		}
	}
	byPolicy := args{}
	for k, v := range found {
		if g.chance(50) && k != "dead-letter-exchange" || found["dead-letter-routing-key"] == nil && g.chance(50) {
			byPolicy[k] = v
			continue
		}
		q.Arguments["x-"+k] = v
	}
	if len(byPolicy) > 0 {
		t.AddPolicy(policy(q.Name, "^"+q.Name+"$", int64(g.IntN(3)), one(g, "all", "queues", q.Type+"_queues"), byPolicy))
	}
	if g.chance(15) {
		d := one(g, args{"max-length": int64(50)}, unknownTo(q.Type), args{"dead-letter-exchange": one(g, randomExchanges...)})
		t.AddPolicy(policy("more-"+q.Name, q.Name, 5, "all", d))
	}
}

func (g generator) binding(t topology.Topology) topology.Binding {
	b := topology.Binding{Source: one(g, randomExchanges...), RoutingKey: one(g, randomPatterns...)}
	if b.ToExchange = g.chance(25); b.ToExchange {
		b.Destination = one(g, randomExchanges...)
	} else {
		b.Destination = one(g, randomQueues...)
	}
	if t.Exchanges[b.Source].Type == topology.Headers {
		b.RoutingKey = ""
		b.Arguments = args{}
		if match := one(g, "", "all", "any", "all-with-x", "any-with-x", "all-with-x"); match != "" {
			b.Arguments["x-match"] = match
		}
		for range 1 + g.IntN(2) {
			k := one(g, "color", "x-last-death-reason", "x-last-death-reason", "x-last-death-exchange", "x-first-death-queue", "x-last-death-queue")
			b.Arguments[k] = map[string]string{
				"color":                 one(g, "red", "blue"),
				"x-last-death-reason":   one(g, "rejected", "rejected", "expired", "maxlen", "delivery_limit"),
				"x-last-death-exchange": one(g, append(randomExchanges, "")...),
				"x-first-death-queue":   one(g, randomQueues...),
				"x-last-death-queue":    one(g, randomQueues...),
			}[k]
		}
	}
	return b
}

func (g generator) message() publication {
	p := publication{exchange: one(g, randomExchanges...), key: one(g, randomKeys...), headers: args{}}
	if g.chance(30) {
		p.exchange, p.key = "", one(g, randomQueues...)
	}
	if g.chance(50) {
		p.headers["color"] = one(g, "red", "blue")
	}
	if g.chance(20) {
		p.headers["x-last-death-reason"] = one(g, "rejected", "expired")
		p.headers["x-last-death-exchange"] = one(g, randomExchanges...)
	}
	if g.chance(25) {
		p.cc = []string{one(g, append(randomKeys, randomQueues...)...)}
	}
	p.expires = g.chance(20)
	return p
}

// history walks the model, killing what it finds. It is nil when nothing dies by hand.
func (g generator) history(s scenario) []death {
	var out []death
	w := publish(s.topology, s.message)
	for range 5 {
		if w.settle(nil) != nil || s.message.expires && w.back() {
			return nil
		}
		places := slices.Sorted(maps.Keys(w.copies))
		if len(places) == 0 {
			break
		}
		q := one(g, places...)
		d := death{q, one(g, g.reasons(w.topology, w.topology.Queues[q])...)}
		w.kill(d.queue, d.reason)
		out = append(out, d)
	}
	if w.settle(nil) != nil || s.message.expires && w.back() {
		return nil
	}
	return out
}

// back reports a copy in a queue that the message first came to, where a test could not
// tell it from one that has yet to expire by its own TTL.
func (w *world) back() bool {
	return slices.ContainsFunc(w.first, func(q string) bool { return len(w.copies[q]) > 0 })
}

func (g generator) reasons(t topology.Topology, q topology.Queue) []deadletter.Reason {
	out := []deadletter.Reason{rejected, rejected}
	s := t.SettingsOf(q)
	if s.DeliveryLimit != nil {
		out = append(out, limit, limit)
	}
	if s.MaxLength != nil && s.Overflow == topology.DropHead && *s.MaxLength == maxCopies {
		out = append(out, maxLen, maxLen)
	}
	return out
}
