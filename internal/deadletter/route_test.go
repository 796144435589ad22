/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package deadletter_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/deadletter"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

func TestRouteByTypeOfExchange(t *testing.T) {
	for name, tc := range map[string]struct {
		exchange string
		binding  string
		keys     []string
		want     bool
	}{
		"a fanout exchange ignores the key":                       {"fanout", "x", []string{"y"}, true},
		"a direct exchange takes the same key":                    {"direct", "a.b", []string{"a.b"}, true},
		"a direct exchange knows no wildcards":                    {"direct", "a.*", []string{"a.b"}, false},
		"a direct exchange looks at every key of the message":     {"direct", "cc", []string{"a", "cc"}, true},
		"a direct exchange takes an empty key":                    {"direct", "", []string{""}, true},
		"a topic exchange takes the same key":                     {"topic", "a.b", []string{"a.b"}, true},
		"a star stands for one word":                              {"topic", "a.*", []string{"a.b"}, true},
		"a star does not stand for two words":                     {"topic", "a.*", []string{"a.b.c"}, false},
		"a star does not stand for no word":                       {"topic", "a.*", []string{"a"}, false},
		"a star stands for an empty word between dots":            {"topic", "a.*.c", []string{"a..c"}, true},
		"an empty key has no word for a star":                     {"topic", "*", []string{""}, false},
		"an empty key has no words for a hash":                    {"topic", "#", []string{""}, true},
		"an empty pattern takes an empty key":                     {"topic", "", []string{""}, true},
		"an empty pattern takes nothing else":                     {"topic", "", []string{"a"}, false},
		"a hash stands for no word":                               {"topic", "a.#", []string{"a"}, true},
		"a hash stands for many words":                            {"topic", "a.#", []string{"a.b.c.d"}, true},
		"a hash in the middle stands for any words":               {"topic", "a.#.d", []string{"a.b.c.d"}, true},
		"a hash in the middle leaves the end to be matched":       {"topic", "a.#.d", []string{"a.b.c"}, false},
		"two hashes share the words":                              {"topic", "#.b.#", []string{"a.b.c"}, true},
		"a hash and a star need one word at least":                {"topic", "#.*", []string{"a"}, true},
		"a hash and a star leave an empty key":                    {"topic", "#.*", []string{""}, false},
		"a topic exchange looks at every key of the message":      {"topic", "b.#", []string{"a", "b.c"}, true},
		"a star inside a word is not a wildcard":                  {"topic", "a*", []string{"ab"}, false},
		"an exchange type that the model does not know is closed": {"x-random", "a", []string{"a"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			top := build(exchange("e", tc.exchange), queue("q", topology.Classic, nil), bind("e", tc.binding, "q"))
			m := deadletter.Message{Keys: tc.keys}
			if got := len(deadletter.Route(top, "e", m).Queues) == 1; got != tc.want {
				t.Errorf("routed: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestRouteByHeaders(t *testing.T) {
	type args = topology.Args
	stamped := args{"color": "red", "size": int64(3), "x-last-death-reason": "rejected"}
	for name, tc := range map[string]struct {
		binding args
		headers args
		want    bool
	}{
		"all wants every header":                                  {args{"x-match": "all", "color": "red", "size": int64(3)}, stamped, true},
		"all fails by one header":                                 {args{"x-match": "all", "color": "red", "size": int64(4)}, stamped, false},
		"all fails by a header that is not there":                 {args{"x-match": "all", "shape": "round"}, stamped, false},
		"all is what no x-match means":                            {args{"color": "red", "size": int64(4)}, stamped, false},
		"no arguments match every message":                        {nil, stamped, true},
		"no arguments match a message without headers":            {nil, nil, true},
		"all ignores keys that begin with x- and matches all":     {args{"x-match": "all", "x-last-death-reason": "expired"}, stamped, true},
		"all ignores keys that begin with x- beside others":       {args{"x-match": "all", "x-last-death-reason": "expired", "color": "blue"}, stamped, false},
		"any wants one header":                                    {args{"x-match": "any", "color": "red", "size": int64(4)}, stamped, true},
		"any fails without one":                                   {args{"x-match": "any", "color": "blue", "size": int64(4)}, stamped, false},
		"any ignores keys that begin with x- and matches none":    {args{"x-match": "any", "x-last-death-reason": "rejected"}, stamped, false},
		"any of no arguments matches none":                        {args{"x-match": "any"}, stamped, false},
		"all-with-x looks at keys that begin with x-":             {args{"x-match": "all-with-x", "x-last-death-reason": "rejected"}, stamped, true},
		"all-with-x fails by a key that begins with x-":           {args{"x-match": "all-with-x", "x-last-death-reason": "expired"}, stamped, false},
		"all-with-x looks at the others too":                      {args{"x-match": "all-with-x", "x-last-death-reason": "rejected", "color": "blue"}, stamped, false},
		"all-with-x fails on a message that has not died":         {args{"x-match": "all-with-x", "x-last-death-reason": "rejected"}, nil, false},
		"any-with-x wants one header, also one that begins x-":    {args{"x-match": "any-with-x", "x-last-death-reason": "rejected", "color": "blue"}, stamped, true},
		"any-with-x fails without one":                            {args{"x-match": "any-with-x", "x-last-death-reason": "expired", "color": "blue"}, stamped, false},
		"an argument without a value asks only for the header":    {args{"x-match": "all", "color": nil}, stamped, true},
		"an argument without a value fails if there is no header": {args{"x-match": "all", "shape": nil}, stamped, false},
		"a number is not the text that looks like it":             {args{"x-match": "all", "size": "3"}, stamped, false},
	} {
		t.Run(name, func(t *testing.T) {
			top := build(exchange("e", topology.Headers), queue("q", topology.Classic, nil), bindHeaders("e", "q", tc.binding))
			if got := len(deadletter.Route(top, "e", deadletter.Publish("e", "", tc.headers)).Queues) == 1; got != tc.want {
				t.Errorf("routed: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestRouteThroughExchanges(t *testing.T) {
	q, p := queue("q", topology.Classic, nil), queue("p", topology.Quorum, nil)
	for name, tc := range map[string]struct {
		topology topology.Topology
		from     string
		key      string
		want     []string
		missing  []string
	}{
		"the default exchange leads to the queue of the key": {
			topology: build(q, p), from: "", key: "q", want: []string{"q"}},
		"the default exchange has no alternate for a queue that is not there": {
			topology: build(q), from: "", key: "r"},
		"a queue that two bindings lead to gets one copy": {
			topology: build(exchange("e", "topic"), q, bind("e", "#", "q"), bind("e", "a", "q")), from: "e", key: "a", want: []string{"q"}},
		"two bindings that match give two copies": {
			topology: build(exchange("e", "topic"), q, p, bind("e", "#", "q"), bind("e", "a", "p")), from: "e", key: "a", want: []string{"p", "q"}},
		"what no binding takes goes to the alternate exchange": {
			topology: build(withAlternate("e", "direct", "a"), exchange("a", "fanout"), q, p, bind("e", "x", "q"), bind("a", "", "p")), from: "e", key: "y", want: []string{"p"}},
		"the alternate exchange gets nothing that a binding takes": {
			topology: build(withAlternate("e", "direct", "a"), exchange("a", "fanout"), q, p, bind("e", "x", "q"), bind("a", "", "p")), from: "e", key: "x", want: []string{"q"}},
		"alternates have alternates": {
			topology: build(withAlternate("e", "direct", "a"), withAlternate("a", "direct", "b"), exchange("b", "fanout"), q, bind("b", "", "q")), from: "e", key: "x", want: []string{"q"}},
		"a binding to an exchange that drops the message is a match all the same": {
			topology: build(withAlternate("e", "fanout", "a"), exchange("dead end", "direct"), exchange("a", "fanout"), q, bindExchange("e", "", "dead end"), bind("a", "", "q")), from: "e", key: "x"},
		"the inner exchange has an alternate of its own": {
			topology: build(exchange("e", "fanout"), withAlternate("inner", "direct", "a"), exchange("a", "fanout"), q, bindExchange("e", "", "inner"), bind("a", "", "q")), from: "e", key: "x", want: []string{"q"}},
		"an alternate that is not there is named": {
			topology: build(withAlternate("e", "direct", "gone"), q), from: "e", key: "x", missing: []string{"gone"}},
		"an exchange that is not there is named": {
			topology: build(q), from: "gone", key: "x", missing: []string{"gone"}},
		"exchanges bound in a circle end": {
			topology: build(exchange("e", "fanout"), exchange("f", "fanout"), q, bindExchange("e", "", "f"), bindExchange("f", "", "e"), bind("f", "", "q")), from: "e", key: "x", want: []string{"q"}},
		"an exchange bound to itself ends": {
			topology: build(exchange("e", "fanout"), bindExchange("e", "", "e")), from: "e", key: "x"},
		"alternates in a circle end": {
			topology: build(withAlternate("e", "direct", "f"), withAlternate("f", "direct", "e")), from: "e", key: "x"},
		"the default exchange as an alternate has no bindings of its own": {
			topology: build(withAlternate("e", "direct", ""), q), from: "e", key: "q"},
		"a policy gives an exchange an alternate": {
			topology: build(exchange("e", "direct"), exchange("a", "fanout"), q, bind("a", "", "q"), alternatePolicy("^e$", 0, "exchanges", "a")), from: "e", key: "x", want: []string{"q"}},
		"an argument beats the policy's alternate": {
			topology: build(withAlternate("e", "direct", "a"), exchange("a", "fanout"), exchange("b", "fanout"), q, p, bind("a", "", "q"), bind("b", "", "p"), alternatePolicy("^e$", 0, "all", "b")), from: "e", key: "x", want: []string{"q"}},
		"of two policies the one with the highest priority decides, also when it has no alternate": {
			topology: build(exchange("e", "direct"), exchange("a", "fanout"), q, bind("a", "", "q"), alternatePolicy("^e$", 0, "exchanges", "a"),
				topology.Policy{Name: "more", Pattern: "e", ApplyTo: "all", Priority: 1, Definition: topology.Args{"max-length": int64(9)}}), from: "e", key: "x"},
		"a policy for queues is nothing to an exchange": {
			topology: build(exchange("e", "direct"), exchange("a", "fanout"), q, bind("a", "", "q"), alternatePolicy("^e$", 0, "queues", "a")), from: "e", key: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			got := deadletter.Route(tc.topology, tc.from, deadletter.Publish(tc.from, tc.key, nil))
			if !slices.Equal(got.Queues, tc.want) || !slices.Equal(got.Missing, tc.missing) {
				t.Errorf("queues %q, missing %q; want %q, %q", got.Queues, got.Missing, tc.want, tc.missing)
			}
		})
	}
}

func alternatePolicy(pattern string, priority int64, applyTo, alternate string) topology.Policy {
	return topology.Policy{Name: "alternate", Pattern: pattern, ApplyTo: applyTo, Priority: priority,
		Definition: topology.Args{topology.KeyAlternateExchange: alternate}}
}

// TestRouteMeetsAnyGraph: whatever is bound to whatever, routing ends, names only queues
// that are there, each once, and does not depend on the order of bindings.
func TestRouteMeetsAnyGraph(t *testing.T) {
	names := []string{"e0", "e1", "e2", "e3"}
	keys := []string{"", "a", "a.b", "a.*", "#", "*"}
	rapid.Check(t, func(t *rapid.T) {
		top := build(queue("q0", topology.Classic, nil), queue("q1", topology.Quorum, nil))
		for _, n := range names {
			e := exchange(n, rapid.SampledFrom([]string{"fanout", "direct", "topic", "headers"}).Draw(t, "type"))
			if rapid.Bool().Draw(t, "alternate") {
				e = withAlternate(n, e.Type, rapid.SampledFrom(append(names, "gone")).Draw(t, "to"))
			}
			top.AddExchange(e)
		}
		for range rapid.IntRange(0, 10).Draw(t, "bindings") {
			b := bind(rapid.SampledFrom(names).Draw(t, "source"), rapid.SampledFrom(keys).Draw(t, "key"), "")
			if b.ToExchange = rapid.Bool().Draw(t, "to exchange"); b.ToExchange {
				b.Destination = rapid.SampledFrom(names).Draw(t, "exchange")
			} else {
				b.Destination = rapid.SampledFrom([]string{"q0", "q1"}).Draw(t, "queue")
			}
			top.Bind(b)
		}
		m := deadletter.Publish("e0", rapid.SampledFrom(keys).Draw(t, "routing key"), nil)
		got := deadletter.Route(top, "e0", m)
		for _, q := range got.Queues {
			if _, ok := top.Queues[q]; !ok {
				t.Fatalf("routed to %q, which is not there", q)
			}
		}
		if len(slices.Compact(slices.Clone(got.Queues))) != len(got.Queues) {
			t.Fatalf("a queue is named twice: %q", got.Queues)
		}
		for _, bs := range top.Bindings {
			slices.Reverse(bs)
		}
		if again := deadletter.Route(top, "e0", m); !slices.Equal(again.Queues, got.Queues) {
			t.Fatalf("%q with the bindings in another order, %q before", again.Queues, got.Queues)
		}
	})
}
