/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package topology

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
)

func TestNormalize(t *testing.T) {
	for name, tc := range map[string]struct {
		in   map[string]any
		want Args
	}{
		"nothing is nil":                           {map[string]any{}, nil},
		"whole numbers of every kind are int64":    {map[string]any{"a": 10000.0, "b": 7, "c": int32(-1), "d": int64(3)}, Args{"a": int64(10000), "b": int64(7), "c": int64(-1), "d": int64(3)}},
		"a fraction stays":                         {map[string]any{"a": 0.5}, Args{"a": 0.5}},
		"what is too large for int64 stays":        {map[string]any{"a": 1e300}, Args{"a": 1e300}},
		"infinity stays":                           {map[string]any{"a": math.Inf(1)}, Args{"a": math.Inf(1)}},
		"maps and lists inside are normalised":     {map[string]any{"a": map[string]any{"b": []any{1.0, "x", []any{2.0}}}}, Args{"a": map[string]any{"b": []any{int64(1), "x", []any{int64(2)}}}}},
		"strings, booleans and null are untouched": {map[string]any{"a": "1", "b": true, "c": nil}, Args{"a": "1", "b": true, "c": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Normalize(tc.in); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %#v, want %#v", got, tc.want)
			}
		})
	}
}

func TestWhatJSONMadeOfArgumentsEqualsWhatWasAskedFor(t *testing.T) {
	want := Desired(testRequest(), withTarget(Quorum, nil)).Wanted
	for _, q := range Sorted(want.Queues) {
		if got := throughJSON(t, q.Arguments); !got.Equal(q.Arguments) {
			t.Errorf("queue %s: got %v, want %v", q.Name, got, q.Arguments)
		}
	}
	for _, p := range Sorted(want.Policies) {
		if got := throughJSON(t, p.Definition); !got.Equal(p.Definition) {
			t.Errorf("policy %s: got %v, want %v", p.Name, got, p.Definition)
		}
	}
}

func throughJSON(t *testing.T, a Args) Args {
	t.Helper()
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return Normalize(out)
}

func TestArgsEqual(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b Args
		want bool
	}{
		"nil and empty":            {nil, Args{}, true},
		"nil and something":        {nil, Args{"a": int64(1)}, false},
		"another value":            {Args{"a": int64(1)}, Args{"a": int64(2)}, false},
		"another type":             {Args{"a": int64(1)}, Args{"a": "1"}, false},
		"another key, nil for all": {Args{"a": nil}, Args{"b": nil}, false},
		"lists":                    {Args{"a": []any{"x"}}, Args{"a": []any{"x"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.a.Equal(tc.b); got != tc.want || tc.b.Equal(tc.a) != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestACloneIsNotTheOriginal(t *testing.T) {
	original := Desired(testRequest(), withTarget(Quorum, nil)).Wanted
	bindings := len(original.SortedBindings())
	c := original.Clone()
	c.RemoveQueue("orders.retry.1.10s")
	c.RemoveExchange("orders.retry.1.return")
	c.Unbind(c.SortedBindings()[0])
	c.Bind(Binding{Source: "orders.retry.park", Destination: "x"})
	delete(c.Policies, "retry-operator.shop.orders")
	if len(original.SortedBindings()) != bindings || len(original.Policies) != 1 || len(original.Queues) != 4 || len(original.Exchanges) != 6 {
		t.Errorf("the original changed: %v", original)
	}
}

func TestRemovingAnObjectRemovesItsBindings(t *testing.T) {
	topo := New()
	topo.AddExchange(Exchange{Name: "a"})
	topo.AddExchange(Exchange{Name: "b"})
	topo.AddQueue(Queue{Name: "b"})
	toQueue := Binding{Source: "a", Destination: "b"}
	toExchange := Binding{Source: "a", Destination: "b", ToExchange: true}
	from := Binding{Source: "b", Destination: "b"}
	for _, b := range []Binding{toQueue, toExchange, from, toQueue} {
		topo.Bind(b)
	}
	if len(topo.SortedBindings()) != 3 {
		t.Fatalf("a binding was added twice: %v", topo.SortedBindings())
	}
	topo.RemoveExchange("b")
	if !topo.Bound(toQueue) || topo.Bound(toExchange) || topo.Bound(from) {
		t.Errorf("exchange b is gone, and there is %v", topo.SortedBindings())
	}
	topo.RemoveQueue("b")
	if topo.Bound(toQueue) {
		t.Errorf("queue b is gone, and there is %v", topo.SortedBindings())
	}
}

func TestParseOwner(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want Owner
		ok   bool
	}{
		"an owner":          {"c/shop/orders", Owner{"c", "shop", "orders"}, true},
		"nothing":           {"", Owner{}, false},
		"a part is missing": {"shop/orders", Owner{}, false},
		"a part too many":   {"a/b/c/d", Owner{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseOwner(tc.text)
			if got != tc.want || (err == nil) != tc.ok {
				t.Errorf("got %v, %v", got, err)
			}
			if tc.ok && got.String() != tc.text {
				t.Errorf("reads back as %q", got)
			}
		})
	}
}
