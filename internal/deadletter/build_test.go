/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package deadletter_test

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/deadletter"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// build puts exchanges, queues, bindings and policies together.
func build(parts ...any) topology.Topology {
	t := topology.New()
	for _, part := range parts {
		switch p := part.(type) {
		case topology.Exchange:
			t.AddExchange(p)
		case topology.Queue:
			t.AddQueue(p)
		case topology.Binding:
			t.Bind(p)
		case topology.Policy:
			t.AddPolicy(p)
		default:
			panic("not a part of a topology")
		}
	}
	return t
}

func exchange(name, kind string) topology.Exchange {
	return topology.Exchange{Name: name, Type: kind, Durable: true}
}

// withAlternate returns an exchange that hands on what it cannot route.
func withAlternate(name, kind, alternate string) topology.Exchange {
	e := exchange(name, kind)
	e.Arguments = topology.Args{topology.KeyAlternateExchange: alternate}
	return e
}

func queue(name, kind string, arguments topology.Args) topology.Queue {
	return topology.Queue{Name: name, Type: kind, Durable: true, Arguments: arguments}
}

func bind(source, key, destination string) topology.Binding {
	return topology.Binding{Source: source, RoutingKey: key, Destination: destination}
}

func bindExchange(source, key, destination string) topology.Binding {
	return topology.Binding{Source: source, RoutingKey: key, Destination: destination, ToExchange: true}
}

func bindHeaders(source, destination string, arguments topology.Args) topology.Binding {
	return topology.Binding{Source: source, Destination: destination, Arguments: arguments}
}

const (
	target     = "orders"
	parkingLot = "orders.parked"
)

// request asks for a ladder with one tier for each delay, and one attempt more.
func request(queueType string, delays ...time.Duration) topology.Request {
	return topology.Request{
		Owner:       topology.Owner{Installation: "test", Namespace: "shop", Name: "orders"},
		Target:      target,
		MaxAttempts: len(delays) + 1,
		Delays:      delays,
		ParkingLot:  parkingLot,
		QueueType:   queueType,
	}
}

// ladderFor returns the ladder for a target, and what the broker shows once all of it is
// declared.
func ladderFor(r topology.Request, w topology.Queue) (topology.Ladder, topology.Topology) {
	l := topology.Desired(r, build(w))
	observed := l.Wanted.Clone()
	observed.AddQueue(w)
	for name, q := range observed.Queues {
		q.State = &topology.QueueState{Status: "running", Messages: new(int64(0)), PendingDeadLetters: new(int64(0))}
		if name == r.Target {
			q.State.Policy = r.PolicyName()
		}
		observed.AddQueue(q)
	}
	return l, observed
}

// unseen is the topology without what the broker reports of its queues, so that the model
// itself has to find the policy in effect.
func unseen(t topology.Topology) topology.Topology {
	c := t.Clone()
	for _, q := range t.Queues {
		q.State = nil
		c.AddQueue(q)
	}
	return c
}

var queueTypes = []string{topology.Classic, topology.Quorum}

// drawLadder draws a request with 1 to 8 attempts, as many delays or fewer, and a target
// of either type.
func drawLadder(t *rapid.T) (topology.Ladder, topology.Topology) {
	attempts := rapid.IntRange(1, 8).Draw(t, "attempts")
	delay := rapid.Int64Range(1, time.Hour.Milliseconds())
	delays := rapid.SliceOfN(delay, min(1, attempts-1), max(0, attempts-1)).Draw(t, "delays in ms")
	r := request(rapid.SampledFrom(queueTypes).Draw(t, "type of tiers"))
	r.MaxAttempts = attempts
	for _, d := range delays {
		r.Delays = append(r.Delays, time.Duration(d)*time.Millisecond)
	}
	return ladderFor(r, queue(target, rapid.SampledFrom(queueTypes).Draw(t, "type of target"), nil))
}

// killed lets a message that came through an exchange to a queue die there.
func killed(t topology.Topology, name string, m deadletter.Message, reason deadletter.Reason) []string {
	return sorted(deadletter.Die(t, name, m, reason).Queues())
}

func sorted(s []string) []string {
	out := slices.Clone(s)
	slices.Sort(out)
	return out
}
