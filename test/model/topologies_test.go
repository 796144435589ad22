/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package model

import (
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

const short = int64(100) // ms that a message waits in a tier

func ttl(ms int64) args { return args{"x-message-ttl": ms} }

// cycles are the ways round that RabbitMQ lets pass or drops.
func cycles() []scenario {
	var out []scenario
	for _, kind := range queueTypes {
		w := func(a args) topology.Queue {
			return topology.Queue{Name: "w", Type: kind, Durable: true, Arguments: a}
		}
		tier := topology.Queue{Name: "t", Type: kind, Durable: true, Arguments: deadLettersToQueue("w", ttl(short))}
		add := func(name string, target topology.Queue, message publication, history ...death) {
			out = append(out, scenario{name: kind + " cycle: " + name, topology: build(target, tier), message: message, history: history})
		}
		add("rejected twice", w(deadLettersToQueue("t", nil)), to("w"), rejections("w", 2)...)
		add("expired", w(deadLettersToQueue("t", ttl(200))), to("w"))
		add("expired by its own TTL", w(deadLettersToQueue("t", nil)), publication{key: "w", expires: true})
		add("rejected, then expired", w(deadLettersToQueue("t", ttl(200))), to("w"), rejections("w", 1)...)
		add("pushed out", w(deadLettersToQueue("t", args{"x-max-length": int64(2)})), to("w"), death{"w", maxLen})
		add("rejected, then pushed out", w(deadLettersToQueue("t", args{"x-max-length": int64(2)})), to("w"), death{"w", rejected}, death{"w", maxLen})
		add("expired into itself", w(deadLettersToQueue("w", ttl(short))), to("w"))
		add("rejected into itself", w(deadLettersToQueue("w", nil)), to("w"), rejections("w", 2)...)
		out = append(out, scenario{
			name:     kind + " cycle: a rejection in the tier after an expiry",
			topology: build(w(deadLettersToQueue("t", nil)), topology.Queue{Name: "t", Type: kind, Durable: true, Arguments: deadLettersToQueue("w", nil)}),
			message:  publication{key: "w", expires: true}, history: []death{{"t", rejected}, {"w", rejected}, {"t", rejected}},
		}, scenario{
			name: kind + " cycle: one copy of two",
			topology: build(w(deadLettersTo("d", ttl(short))), exchange("d", "fanout"), classic("p", nil), quorum("q", nil),
				bind("d", "", "w"), bind("d", "", "p"), bind("d", "", "q")),
			message: to("w"),
		})
	}
	limited := args{"x-delivery-limit": int64(2)}
	tier := quorum("t", deadLettersToQueue("w", ttl(short)))
	return append(out,
		scenario{name: "quorum cycle: over the delivery limit", topology: build(quorum("w", deadLettersToQueue("t", limited)), tier),
			message: to("w"), history: []death{{"w", limit}}},
		scenario{name: "quorum cycle: rejected, then over the delivery limit", topology: build(quorum("w", deadLettersToQueue("t", limited)), tier),
			message: to("w"), history: []death{{"w", rejected}, {"w", limit}}},
		scenario{name: "at-least-once cycle: expired in the target, kept in the tier",
			topology: build(quorum("w", deadLettersToQueue("t", nil)), quorum("t", atLeastOnce(deadLettersToQueue("w", ttl(short))))),
			message:  publication{key: "w", expires: true}},
		scenario{name: "at-least-once cycle: rejected, returns",
			topology: build(quorum("w", atLeastOnce(deadLettersToQueue("t", nil))), quorum("t", atLeastOnce(deadLettersToQueue("w", ttl(short))))),
			message:  to("w"), history: rejections("w", 2)},
		scenario{name: "three tiers in a row that expire into each other",
			topology: build(classic("a", deadLettersToQueue("b", ttl(short))), quorum("b", deadLettersToQueue("c", ttl(short))),
				classic("c", deadLettersToQueue("a", ttl(short)))), message: to("a")},
	)
}

// wayOut is a queue w whose dead letters go to an exchange d, with queues to end in.
func wayOut(more args, parts ...any) topology.Topology {
	t := build(parts...)
	t.AddQueue(classic("w", deadLettersTo("d", more)))
	t.AddQueue(classic("p", nil))
	t.AddQueue(quorum("q", nil))
	return t
}

// routings are the ways of one dead letter through exchanges.
func routings() []scenario {
	keyed := publication{key: "w", cc: []string{"k.c"}, bcc: []string{"k.b"}}
	var out []scenario
	add := func(name string, t topology.Topology, message publication) {
		out = append(out, scenario{name: name, topology: t, message: message, history: rejections("w", 1)})
	}
	add("direct dead-letter exchange by the original key", wayOut(nil, exchange("d", "direct"), bind("d", "w", "p"), bind("d", "x", "q")), to("w"))
	add("direct dead-letter exchange without that key", wayOut(nil, exchange("d", "direct"), bind("d", "x", "p")), to("w"))
	add("direct dead-letter exchange by a key in CC and another in BCC", wayOut(nil, exchange("d", "direct"), bind("d", "k.c", "p"), bind("d", "k.b", "q")), keyed)
	add("the alternate exchange gets nothing if one key of several is bound",
		wayOut(nil, withAlternate("d", "direct", "a"), exchange("a", "fanout"), bind("d", "k.c", "p"), bind("a", "", "q")), keyed)
	add("a dead-letter-routing-key takes the place of all keys",
		wayOut(args{"x-dead-letter-routing-key": "k"}, exchange("d", "direct"), bind("d", "k", "p"), bind("d", "k.c", "q"), bind("d", "w", "q")), keyed)
	add("topic dead-letter exchange", wayOut(nil, exchange("d", "topic"), bind("d", "*.c", "p"), bind("d", "k.#", "q")), keyed)
	add("topic dead-letter exchange that wants one word more", wayOut(nil, exchange("d", "topic"), bind("d", "w.*", "p"), bind("d", "w.#", "q")), to("w"))
	add("exchanges bound to exchanges", wayOut(nil, exchange("d", "fanout"), exchange("e", "topic"), exchange("f", "headers"),
		bindExchange("d", "", "e"), bindExchange("d", "", "f"), bind("e", "w", "p"),
		bindHeaders("f", "q", args{"x-match": "all-with-x", "x-last-death-queue": "w"})), to("w"))
	add("exchanges bound in a circle", wayOut(nil, exchange("d", "fanout"), exchange("e", "fanout"),
		bindExchange("d", "", "e"), bindExchange("e", "", "d"), bind("e", "", "p")), to("w"))
	add("the alternate of an inner exchange", wayOut(nil, exchange("d", "fanout"), withAlternate("e", "direct", "a"), exchange("a", "fanout"),
		bindExchange("d", "", "e"), bind("e", "x", "p"), bind("a", "", "q")), to("w"))
	add("a binding to an exchange that drops it is a match", wayOut(nil, withAlternate("d", "fanout", "a"), exchange("e", "direct"), exchange("a", "fanout"),
		bindExchange("d", "", "e"), bind("a", "", "q")), to("w"))
	add("alternates of alternates", wayOut(nil, withAlternate("d", "direct", "a"), withAlternate("a", "headers", "b"), exchange("b", "fanout"), bind("b", "", "q")), to("w"))
	add("alternates in a circle", wayOut(nil, withAlternate("d", "direct", "a"), withAlternate("a", "direct", "d")), to("w"))
	add("an alternate exchange that is missing", wayOut(nil, withAlternate("d", "direct", "gone")), to("w"))
	add("the default exchange as an alternate", wayOut(args{"x-dead-letter-routing-key": "p"}, withAlternate("d", "direct", "")), to("w"))
	add("the default exchange by the key in CC", build(classic("w", deadLettersTo("", nil)), classic("p", nil)), publication{key: "w", cc: []string{"w", "p"}})
	add("an alternate exchange by policy", wayOut(nil, exchange("d", "direct"), exchange("a", "fanout"), bind("a", "", "p"),
		policy("ae", "^d$", 0, "exchanges", args{"alternate-exchange": "a"})), to("w"))
	add("an alternate exchange by an argument and by policy", wayOut(nil, withAlternate("d", "direct", "a"), exchange("a", "fanout"), exchange("b", "fanout"),
		bind("a", "", "p"), bind("b", "", "q"), policy("ae", "^d$", 0, "all", args{"alternate-exchange": "b"})), to("w"))
	add("a policy for queues gives an exchange no alternate", wayOut(nil, exchange("d", "direct"), exchange("a", "fanout"), bind("a", "", "p"),
		policy("ae", "^[da]$", 0, "queues", args{"max-length": int64(9)}), policy("less", "^d$", -1, "exchanges", args{"alternate-exchange": "a"})), to("w"))
	add("a policy with more priority and without an alternate exchange", wayOut(nil, exchange("d", "direct"), exchange("a", "fanout"), bind("a", "", "p"),
		policy("more", "^d$", 5, "all", args{"max-length": int64(9)}), policy("less", "^d$", 1, "exchanges", args{"alternate-exchange": "a"})), to("w"))
	for _, m := range []struct {
		name string
		a    args
	}{
		{"all", args{"x-match": "all", "color": "red", "x-last-death-reason": "expired"}},
		{"all, with another color", args{"x-match": "all", "color": "blue"}},
		{"nothing", args{"color": "red", "x-last-death-reason": "expired"}},
		{"any of what begins with x-", args{"x-match": "any", "x-last-death-reason": "rejected"}},
		{"any, one of two", args{"x-match": "any", "color": "red", "shape": "round"}},
		{"all-with-x", args{"x-match": "all-with-x", "color": "red", "x-last-death-reason": "rejected", "x-first-death-queue": "w"}},
		{"all-with-x and another reason", args{"x-match": "all-with-x", "color": "red", "x-last-death-reason": "expired"}},
		{"any-with-x", args{"x-match": "any-with-x", "color": "blue", "x-last-death-exchange": ""}},
		{"any-with-x of nothing that is there", args{"x-match": "any-with-x", "color": "blue", "x-first-death-exchange": "d"}},
		{"numbers", args{"x-match": "all", "size": int64(3)}},
		{"a number for a text", args{"x-match": "all", "size": "3"}},
		{"no headers at all", nil},
	} {
		add("headers dead-letter exchange, x-match "+m.name, wayOut(nil, withAlternate("d", "headers", "a"), exchange("a", "fanout"),
			bindHeaders("d", "p", m.a), bind("a", "", "q")), publication{key: "w", headers: args{"color": "red", "size": int64(3)}})
	}
	for _, key := range []string{"", ".", "a", "a.b", "a..b", "a.b.c"} {
		t := build(exchange("e", "topic"), withAlternate("d", "topic", "a"), exchange("a", "fanout"), classic("alt", nil))
		t.AddQueue(classic("w", deadLettersTo("d", nil)))
		t.Bind(bind("e", "#", "w"))
		t.Bind(bind("a", "", "alt"))
		for q, pattern := range map[string]string{"hash": "#", "star": "*", "two": "*.*", "hash-star": "#.*", "a-hash": "a.#", "empty": "", "middle": "a.#.b", "hashes": "#.b.#", "a-star-b": "a.*.b"} {
			t.AddQueue(classic(q, nil))
			t.Bind(bind("d", pattern, q))
		}
		add("topic patterns on the key "+key, t, publication{exchange: "e", key: key})
	}
	return out
}

// settings are the ways for arguments, policies and operator policies to decide together.
func settings() []scenario {
	var out []scenario
	add := func(name string, w topology.Queue, message publication, history []death, parts ...any) {
		t := build(parts...)
		t.AddQueue(w)
		for _, q := range []string{"p", "r"} {
			t.AddQueue(quorum(q, nil))
			t.AddExchange(exchange("to-"+q, "fanout"))
			t.Bind(bind("to-"+q, "", q))
		}
		out = append(out, scenario{name: "settings: " + name, topology: t, message: message, history: history})
	}
	w, reject := to("w"), rejections("w", 1)
	dlx := func(to string) args { return args{"dead-letter-exchange": to} }
	one := func(d args) topology.Policy { return policy("one", "^w$", 0, "all", d) }
	for _, kind := range queueTypes {
		q := func(a args) topology.Queue {
			return topology.Queue{Name: "w", Type: kind, Durable: true, Arguments: a}
		}
		add(kind+", a dead-letter exchange as argument beats a policy", q(deadLettersTo("to-r", nil)), w, reject, one(dlx("to-p")))
		add(kind+", no dead-letter exchange", q(nil), w, reject)
		add(kind+", a routing key by policy with an exchange by argument", q(deadLettersTo("", nil)), w, reject, one(args{"dead-letter-routing-key": "p"}))
		add(kind+", an exchange by policy with a routing key by argument and by policy", q(deadLettersToQueue("r", nil)), w, reject, one(args{"dead-letter-routing-key": "p"}))
		add(kind+", a routing key by policy alone", q(nil), w, reject, one(args{"dead-letter-routing-key": "p"}))
		add(kind+", of two policies the one with more priority", q(nil), w, reject, one(dlx("to-p")), policy("two", "w", 3, "queues", dlx("to-r")))
		add(kind+", a policy for the other type", q(nil), w, reject,
			one(dlx("to-p")), policy("two", "w", 3, map[string]string{topology.Classic: "quorum_queues", topology.Quorum: "classic_queues"}[kind], dlx("to-r")))
		add(kind+", a policy for this type", q(nil), w, reject, one(dlx("to-p")), policy("two", "w", 3, kind+"_queues", dlx("to-r")))
		add(kind+", a policy for exchanges", q(nil), w, reject, one(dlx("to-p")), policy("two", "w", 3, "exchanges", args{"alternate-exchange": "to-r"}))
		add(kind+", a policy with a key that the type does not know", q(nil), w, reject, one(dlx("to-p")), policy("two", "w", 3, "all", unknownTo(kind)))
		add(kind+", the smaller TTL, by argument", q(deadLettersTo("to-p", ttl(short))), w, nil, one(args{"message-ttl": int64(600_000)}))
		add(kind+", the smaller TTL, by policy", q(deadLettersTo("to-p", ttl(600_000))), w, nil, one(args{"message-ttl": short}))
		add(kind+", the smaller TTL, by operator policy", q(deadLettersTo("to-p", ttl(600_000))), w, nil,
			one(args{"message-ttl": int64(500_000)}), operator(policy("op", "w", 0, "all", args{"message-ttl": short})))
		add(kind+", the smaller length, by policy", q(deadLettersTo("to-p", args{"x-max-length": int64(6)})), w, []death{{"w", maxLen}}, one(args{"max-length": int64(2)}))
		add(kind+", a length by operator policy", q(deadLettersTo("to-p", nil)), w, []death{{"w", maxLen}}, operator(policy("op", "w", 0, "all", args{"max-length": int64(3)})))
	}
	lost := deadLettersTo("gone", nil)
	atLeast := args{"x-dead-letter-strategy": "at-least-once"}
	add("at-least-once by arguments, exchange missing", quorum("w", atLeastOnce(lost)), w, reject)
	add("at-least-once by policy, exchange missing", quorum("w", nil), w, reject,
		one(args{"dead-letter-exchange": "gone", "dead-letter-strategy": "at-least-once", "overflow": "reject-publish"}))
	add("at-least-once without reject-publish", quorum("w", withArgs(lost, atLeast)), w, reject)
	add("at-least-once, overflow by policy only", quorum("w", withArgs(lost, atLeast)), w, reject, one(args{"overflow": "reject-publish"}))
	add("at-least-once, overflow by policy against the argument", quorum("w", withArgs(lost, withArgs(atLeast, args{"x-overflow": "drop-head"}))), w, reject, one(args{"overflow": "reject-publish"}))
	add("at-least-once, drop-head by policy against the argument", quorum("w", atLeastOnce(lost)), w, reject, one(args{"overflow": "drop-head"}))
	add("at-most-once by argument against a policy", quorum("w", withArgs(lost, args{"x-dead-letter-strategy": "at-most-once"})), w, reject,
		one(args{"dead-letter-strategy": "at-least-once", "overflow": "reject-publish"}))
	add("at-least-once on a classic queue by policy", classic("w", nil), w, reject,
		one(args{"dead-letter-exchange": "to-p", "dead-letter-strategy": "at-least-once", "overflow": "reject-publish"}))
	add("at-least-once, nothing bound", quorum("w", atLeastOnce(deadLettersTo("empty", nil))), w, reject, exchange("empty", "direct"))
	add("at-least-once, to a queue that does not exist", quorum("w", atLeastOnce(deadLettersToQueue("nowhere", nil))), w, reject)
	add("at-least-once, to two queues", quorum("w", atLeastOnce(deadLettersTo("both", nil))), w, reject,
		exchange("both", "fanout"), bindExchange("both", "", "to-p"), bindExchange("both", "", "to-r"))
	add("the smaller delivery limit, by policy", quorum("w", deadLettersTo("to-p", args{"x-delivery-limit": int64(90)})), w, []death{{"w", limit}}, one(args{"delivery-limit": int64(2)}))
	add("the default delivery limit", quorum("w", deadLettersTo("to-p", nil)), w, []death{{"w", limit}})
	full := publication{key: "w", refused: "w"}
	add("reject-publish-dlx sends the refused message on", classic("w", deadLettersTo("to-p", args{"x-max-length": int64(2), "x-overflow": "reject-publish-dlx"})), full, nil)
	add("reject-publish-dlx by policy loses to the argument", classic("w", deadLettersTo("to-p", args{"x-max-length": int64(2), "x-overflow": "drop-head"})), w, []death{{"w", maxLen}},
		one(args{"overflow": "reject-publish"}))
	return out
}

// policyKeys is one policy for each key that both versions take, with a queue of each type:
// the broker says in effect only those that the type knows.
func policyKeys() scenario {
	t := topology.New()
	for key, value := range map[string]any{
		"expires": int64(3_600_000), "message-ttl": int64(3_600_000), "max-length": int64(99), "max-length-bytes": int64(9999),
		"max-in-memory-length": int64(9), "max-in-memory-bytes": int64(9), "overflow": "drop-head", "delivery-limit": int64(7),
		"dead-letter-exchange": "x", "dead-letter-routing-key": "x", "dead-letter-strategy": "at-most-once",
		"queue-mode": "lazy", "queue-version": int64(2), "target-group-size": int64(1), "initial-cluster-size": int64(1),
		"max-age": "1D", "stream-max-segment-size-bytes": int64(99_999), "stream-filter-size-bytes": int64(17), "alternate-exchange": "x",
	} {
		t.AddPolicy(policy(key, "^"+key+" ", 1, "queues", args{key: value}))
		for _, kind := range []string{topology.Classic, topology.Quorum, topology.Stream} {
			t.AddQueue(topology.Queue{Name: key + " " + kind, Type: kind, Durable: true})
		}
	}
	return scenario{name: "settings: the policy keys that each type of queue knows", topology: t}
}
