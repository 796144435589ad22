/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package model

import (
	"maps"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/deadletter"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

type args = topology.Args

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
		case operator:
			t.OperatorPolicies[p.Name] = topology.Policy(p)
		default:
			panic("not a part of a topology")
		}
	}
	return t
}

// operator is an operator policy.
type operator topology.Policy

func classic(name string, a args) topology.Queue {
	return topology.Queue{Name: name, Type: topology.Classic, Durable: true, Arguments: a}
}

func quorum(name string, a args) topology.Queue {
	return topology.Queue{Name: name, Type: topology.Quorum, Durable: true, Arguments: a}
}

func exchange(name, kind string) topology.Exchange {
	return topology.Exchange{Name: name, Type: kind, Durable: true}
}

func withAlternate(name, kind, alternate string) topology.Exchange {
	e := exchange(name, kind)
	e.Arguments = args{topology.KeyAlternateExchange: alternate}
	return e
}

func bind(source, key, destination string) topology.Binding {
	return topology.Binding{Source: source, RoutingKey: key, Destination: destination}
}

func bindExchange(source, key, destination string) topology.Binding {
	return topology.Binding{Source: source, RoutingKey: key, Destination: destination, ToExchange: true}
}

func bindHeaders(source, destination string, a args) topology.Binding {
	return topology.Binding{Source: source, Destination: destination, Arguments: a}
}

func policy(name, pattern string, priority int64, applyTo string, definition args) topology.Policy {
	return topology.Policy{Name: name, Pattern: pattern, ApplyTo: applyTo, Priority: priority, Definition: definition}
}

func to(queue string) publication { return publication{key: queue} }

func rejections(queue string, n int) []death {
	var out []death
	for range n {
		out = append(out, death{queue, deadletter.Rejected})
	}
	return out
}

// deadLettersTo are the arguments of a queue whose dead letters go to an exchange.
func deadLettersTo(exchange string, more args) args {
	return withArgs(args{"x-dead-letter-exchange": exchange}, more)
}

// deadLettersToQueue are the arguments of a queue whose dead letters go to another.
func deadLettersToQueue(queue string, more args) args {
	return deadLettersTo("", withArgs(more, args{"x-dead-letter-routing-key": queue}))
}

// atLeastOnce adds what at-least-once dead-lettering needs.
func atLeastOnce(a args) args {
	return withArgs(a, args{"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"})
}

func withArgs(a, more args) args {
	out := args{}
	maps.Copy(out, a)
	maps.Copy(out, more)
	return out
}
