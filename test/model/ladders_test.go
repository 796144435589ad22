/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package model

import (
	"fmt"
	"slices"
	"time"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/deadletter"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

const (
	rejected = deadletter.Rejected
	maxLen   = deadletter.MaxLen
	limit    = deadletter.DeliveryLimit
)

// ladder asks for the real thing with tiers of about 100 ms.
func ladder(tiers string, attempts int) *topology.Request {
	r := topology.Request{
		Owner:       topology.Owner{Installation: "test", Namespace: "shop", Name: "orders"},
		Target:      "orders",
		MaxAttempts: attempts,
		ParkingLot:  "orders.parked",
		QueueType:   tiers,
	}
	for a := range attempts - 1 {
		r.Delays = append(r.Delays, time.Duration(100+20*a)*time.Millisecond)
	}
	return &r
}

var queueTypes = []string{topology.Classic, topology.Quorum}

func target(kind string, a args) topology.Topology {
	return build(
		topology.Queue{Name: "orders", Type: kind, Durable: true, Arguments: a},
		exchange("shop", "topic"), bind("shop", "order.#", "orders"),
	)
}

var order = publication{exchange: "shop", key: "order.created", headers: args{"color": "red"}}

// wholeLadders are the operator's own topology, untouched.
func wholeLadders() []scenario {
	var out []scenario
	for _, kind := range queueTypes {
		for attempts := 1; attempts <= 4; attempts++ {
			out = append(out, scenario{
				name:     fmt.Sprintf("%s ladder parks after %d rejections", kind, attempts),
				topology: target(kind, nil), ladder: ladder(kind, attempts),
				message: order, history: rejections("orders", attempts),
			})
		}
		add := func(name string, a args, message publication, history ...death) {
			out = append(out, scenario{
				name: kind + " ladder: " + name, topology: target(kind, a), ladder: ladder(kind, 3),
				message: message, history: history,
			})
		}
		expiring := order
		expiring.expires = true
		add("expired by the message's own TTL", nil, expiring)
		add("expired in the target after a rejection", args{"x-message-ttl": int64(300)}, order, rejections("orders", 1)...)
		add("pushed out after a rejection", args{"x-max-length": int64(4)}, order, death{"orders", rejected}, death{"orders", maxLen})
		forged := order
		forged.headers = args{"x-last-death-reason": "rejected", "x-last-death-exchange": "orders.retry.2.return", "x-first-death-queue": "elsewhere"}
		add("with forged headers", nil, forged, rejections("orders", 3)...)
	}
	copied := order
	copied.cc, copied.bcc = []string{"orders.parked"}, []string{"hidden"}
	return append(out,
		scenario{
			name:     "quorum ladder: over the delivery limit after two rejections",
			topology: target(topology.Quorum, args{"x-delivery-limit": int64(4)}), ladder: ladder(topology.Quorum, 4),
			message: order, history: append(rejections("orders", 2), death{"orders", limit}),
		},
		scenario{
			name:     "quorum target over classic tiers, with keys in CC and BCC",
			topology: target(topology.Quorum, nil), ladder: ladder(topology.Classic, 3),
			message: copied, history: rejections("orders", 3),
		},
		scenario{
			name:     "classic target over quorum tiers, published to the queue by its name",
			topology: target(topology.Classic, nil), ladder: ladder(topology.Quorum, 3),
			message: to("orders"), history: rejections("orders", 3),
		},
		scenario{
			name: "the ladder's policy takes over the keys of the one that it outranks",
			topology: withParts(target(topology.Quorum, nil), policy("house", "^ord", 7, "all", args{"max-length": int64(3), "message-ttl": int64(400)}),
				operator(policy("rule", "orders$", 0, "queues", args{"message-ttl": int64(300)}))),
			ladder: ladder(topology.Quorum, 3), message: order, history: rejections("orders", 1),
		},
	)
}

func withParts(t topology.Topology, parts ...any) topology.Topology {
	for _, p := range parts {
		switch p := p.(type) {
		case topology.Policy:
			t.AddPolicy(p)
		case operator:
			t.OperatorPolicies[p.Name] = topology.Policy(p)
		default:
			panic("not a policy")
		}
	}
	return t
}

// brokenLadders are the operator's topology with one thing wrong.
func brokenLadders() []scenario {
	var out []scenario
	for _, kind := range queueTypes {
		for _, b := range breakages(kind) {
			b.name = kind + " ladder, but " + b.name
			b.message.exchange, b.message.key = order.exchange, order.key
			if b.topology.Queues == nil {
				b.topology = target(kind, nil)
			}
			b.ladder = ladder(kind, 3)
			out = append(out, b)
		}
	}
	return append(out, scenario{
		name:     "quorum ladder, but no binding for delivery_limit",
		topology: target(topology.Quorum, args{"x-delivery-limit": int64(3)}), ladder: ladder(topology.Quorum, 3),
		message: order, history: []death{{"orders", limit}},
		spoil: func(s *spoiler) { s.unbind(diedOf("delivery_limit")) },
	})
}

func diedOf(reason string) func(topology.Binding) bool {
	return func(b topology.Binding) bool { return b.Arguments["x-last-death-reason"] == reason }
}

func from(source string) func(topology.Binding) bool {
	return func(b topology.Binding) bool { return b.Source == source }
}

// breakages are what can be wrong with a ladder. The first are tried with both types of
// queue: what finds no way is lost with the one and stalls with the other.
func breakages(kind string) []scenario {
	out := []scenario{
		{
			name: "no binding for expired messages", message: publication{expires: true},
			spoil: func(s *spoiler) { s.unbind(diedOf("expired")) },
		}, {
			name: "no binding for messages pushed out", history: []death{{"orders", maxLen}},
			topology: target(kind, args{"x-max-length": int64(3)}),
			spoil:    func(s *spoiler) { s.unbind(diedOf("maxlen")) },
		}, {
			name: "without an alternate exchange", history: rejections("orders", 1),
			spoil: func(s *spoiler) { s.redeclare(s.DeadLetterExchange, nil) },
		}, {
			name: "its alternate exchange is gone", history: rejections("orders", 1),
			spoil: func(s *spoiler) { s.deleteExchange(s.FirstFailure) },
		}, {
			name: "nothing is bound to the alternate exchange", history: rejections("orders", 1),
			spoil: func(s *spoiler) { s.unbind(from(s.FirstFailure)) },
		}, {
			name: "the first return exchange is gone", history: rejections("orders", 1),
			spoil: func(s *spoiler) { s.deleteExchange(s.Tiers[0].Return) },
		}, {
			name: "the first return exchange is not bound to the target", history: rejections("orders", 1),
			spoil: func(s *spoiler) { s.unbind(from(s.Tiers[0].Return)) },
		}, {
			name: "a return exchange is not bound and the park exchange is gone", history: rejections("orders", 1),
			spoil: func(s *spoiler) { s.unbind(from(s.Tiers[0].Return)); s.deleteExchange(s.Park) },
		}, {
			name: "the dead-letter exchange is gone", history: rejections("orders", 1),
			spoil: func(s *spoiler) { s.deleteExchange(s.DeadLetterExchange) },
		}, {
			name: "the target's policy is gone", history: rejections("orders", 1),
			spoil: func(s *spoiler) { s.deletePolicy(s.Request.PolicyName()) },
		}, {
			name: "a policy with more priority has no dead-letter exchange", history: rejections("orders", 1),
			spoil: func(s *spoiler) { s.putPolicy(policy("more", "orders", 1000, "queues", args{"max-length": int64(99)})) },
		}, {
			name: "a policy with more priority sends dead letters elsewhere", history: rejections("orders", 1),
			spoil: func(s *spoiler) {
				s.putPolicy(policy("more", "^orders$", 1000, "all", args{"dead-letter-exchange": "", "dead-letter-routing-key": "orders.parked"}))
			},
		}, {
			name: "a policy with more priority has a key that the type does not know", history: rejections("orders", 3),
			spoil: func(s *spoiler) { s.putPolicy(policy("more", "^orders$", 1000, "all", unknownTo(kind))) },
		},
	}
	if kind == topology.Classic {
		return out
	}
	return append(out, []scenario{
		{
			name: "no binding for the second failure", history: rejections("orders", 3),
			spoil: func(s *spoiler) {
				s.unbind(func(b topology.Binding) bool { return b.Arguments["x-last-death-exchange"] == s.Tiers[0].Return })
			},
		}, {
			name: "with x-match all", history: rejections("orders", 1),
			spoil: func(s *spoiler) { s.rebind("all") },
		}, {
			name: "with x-match any", history: rejections("orders", 2),
			spoil: func(s *spoiler) { s.rebind("any") },
		}, {
			name: "a policy with less priority is there too", history: rejections("orders", 3),
			spoil: func(s *spoiler) {
				s.putPolicy(policy("less", ".*", 1, "all", args{"dead-letter-exchange": "amq.fanout", "dead-letter-routing-key": "x"}))
			},
		}, {
			name: "the first tier is gone", history: rejections("orders", 1),
			spoil: func(s *spoiler) { s.deleteQueue(s.Tiers[0].Queue) },
		}, {
			name: "the parking lot is gone", message: publication{expires: true},
			spoil: func(s *spoiler) { s.deleteQueue(s.Request.ParkingLot) },
		}, {
			name: "two tiers take the first failure", history: rejections("orders", 2),
			spoil: func(s *spoiler) { s.bind(bind(s.FirstFailure, "", s.Tiers[1].Queue)) },
		}, {
			name: "a tap on the dead-letter exchange shuts the alternate exchange", history: rejections("orders", 1),
			spoil: func(s *spoiler) { s.bind(bindHeaders(s.DeadLetterExchange, "orders.parked", nil)) },
		}, {
			name: "a return exchange leads to the parking lot too", history: rejections("orders", 2),
			spoil: func(s *spoiler) { s.bind(bind(s.Tiers[0].Return, "", "orders.parked")) },
		},
	}...)
}

// unknownTo is a definition that the type leaves out as a whole.
func unknownTo(kind string) args {
	if kind == topology.Classic {
		return args{"dead-letter-exchange": "amq.fanout", "delivery-limit": int64(5)}
	}
	return args{"dead-letter-exchange": "amq.fanout", "queue-mode": "lazy"}
}

// rebind puts another x-match into the bindings of the dead-letter exchange.
func (s *spoiler) rebind(match string) {
	old := slices.Clone(s.observed.Bindings[s.DeadLetterExchange])
	s.unbind(from(s.DeadLetterExchange))
	for _, b := range old {
		b.Arguments = withArgs(b.Arguments, args{"x-match": match})
		b.PropertiesKey = ""
		s.bind(b)
	}
}

// redeclare makes an exchange again with other arguments, and all its bindings.
func (s *spoiler) redeclare(name string, a args) {
	e := s.Wanted.Exchanges[name]
	e.Arguments = a
	s.deleteExchange(name)
	s.declareExchange(e)
	for _, b := range s.observed.SortedBindings() {
		if b.Source == name || b.ToExchange && b.Destination == name {
			s.bind(b)
		}
	}
}
