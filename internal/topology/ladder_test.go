/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
)

func testRequest() Request {
	return Request{
		Owner:       Owner{Installation: "cluster-1", Namespace: "shop", Name: "orders"},
		Target:      "orders",
		MaxAttempts: 4,
		Delays:      []time.Duration{10 * time.Second, time.Minute, 10 * time.Minute},
		ParkingLot:  "orders.parked",
		QueueType:   Quorum,
	}
}

func withTarget(queueType string, args Args, policies ...Policy) Topology {
	topo := New()
	topo.AddQueue(Queue{Name: "orders", Type: queueType, Durable: true, Arguments: args, State: &QueueState{}})
	for _, p := range policies {
		topo.AddPolicy(p)
	}
	return topo
}

func TestRequestFor(t *testing.T) {
	policy := &v1alpha1.RetryPolicy{}
	policy.Namespace, policy.Name = "shop", "orders"
	policy.Spec.Queue = "orders"
	policy.Spec.MaxAttempts = 3
	policy.Spec.Backoff.Tiers = []v1alpha1.Tier{{Delay: metav1.Duration{Duration: 10 * time.Second}}}

	r := RequestFor(policy, "cluster-1")
	want := Request{
		Owner: Owner{"cluster-1", "shop", "orders"}, Target: "orders", MaxAttempts: 3, Delays: []time.Duration{10 * time.Second},
		ParkingLot: "orders.parked", QueueType: Quorum, Retain: true,
	}
	if fmt.Sprint(r) != fmt.Sprint(want) {
		t.Errorf("got %+v\nwant %+v", r, want)
	}

	policy.Spec.ParkingLot.QueueName = "failed"
	policy.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	if r := RequestFor(policy, "cluster-1"); r.ParkingLot != "failed" || !r.Deleting {
		t.Errorf("got %+v", r)
	}
}

func TestTiers(t *testing.T) {
	s := time.Second
	for name, tc := range map[string]struct {
		maxAttempts int
		delays      []time.Duration
		want        []string
	}{
		"one attempt has no tier":                              {1, nil, nil},
		"a tier for each retry":                                {3, []time.Duration{s, 2 * s}, []string{"orders.retry.1.1s", "orders.retry.2.2s"}},
		"the last delay repeats with a queue for each attempt": {4, []time.Duration{s, 2 * s}, []string{"orders.retry.1.1s", "orders.retry.2.2s", "orders.retry.3.2s"}},
		"more delays than retries are left out":                {2, []time.Duration{s, 2 * s}, []string{"orders.retry.1.1s"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := testRequest()
			r.MaxAttempts, r.Delays = tc.maxAttempts, tc.delays
			var got []string
			for _, tier := range r.tiers() {
				got = append(got, tier.Queue)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// TestTheLadder reads the picture of design.md, section 3, off the topology.
func TestTheLadder(t *testing.T) {
	l := Desired(testRequest(), withTarget(Quorum, nil))
	var got []string
	for _, b := range l.Wanted.SortedBindings() {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s -> %s %s %s", strings.Replace(b.Source, l.DeadLetterExchange, "L", 1), b.Destination,
			b.Arguments.String("x-last-death-reason"), b.Arguments.String("x-last-death-exchange"))))
		if len(b.Arguments) > 0 && b.Arguments.String("x-match") != "all-with-x" {
			t.Errorf("%v matches everything", b)
		}
	}
	slices.Sort(got)
	want := []string{
		"L -> orders.parked delivery_limit",
		"L -> orders.parked expired",
		"L -> orders.parked maxlen",
		"L -> orders.parked rejected orders.retry.3.return",
		"L -> orders.retry.2.1m rejected orders.retry.1.return",
		"L -> orders.retry.3.10m rejected orders.retry.2.return",
		"L.first -> orders.retry.1.10s",
		"orders.retry.1.return -> orders",
		"orders.retry.2.return -> orders",
		"orders.retry.3.return -> orders",
		"orders.retry.park -> orders.parked",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	alternates := map[string]string{}
	for _, e := range Sorted(l.Wanted.Exchanges) {
		alternates[strings.Replace(e.Name, l.DeadLetterExchange, "L", 1)] = e.Type + " " + strings.Replace(e.Arguments.String("alternate-exchange"), l.DeadLetterExchange, "L", 1)
		if !e.Internal || !e.Durable || e.AutoDelete {
			t.Errorf("exchange %s can be published to or goes away", e.Name)
		}
	}
	if want := map[string]string{
		"L": "headers L.first", "L.first": "fanout ", "orders.retry.park": "fanout ",
		"orders.retry.1.return": "fanout orders.retry.park", "orders.retry.2.return": "fanout orders.retry.park", "orders.retry.3.return": "fanout orders.retry.park",
	}; !maps.Equal(alternates, want) {
		t.Errorf("got %v, want %v", alternates, want)
	}
	if q := l.Wanted.Queues["orders.parked"]; q.Arguments["x-delivery-limit"] != int64(-1) || q.Arguments.Has("x-overflow") {
		t.Errorf("reading the parking lot wears messages out: %v", q.Arguments)
	}
	if s := New().SettingsOf(l.Wanted.Queues["orders.retry.2.1m"]); !s.AtLeastOnce || *s.DeadLetterExchange != "orders.retry.2.return" || s.DeadLetterRoutingKey != nil || *s.MessageTTL != 60000 {
		t.Errorf("a tier can lose messages or changes their key: %s", settingsText(s))
	}
}

func TestThePolicyOnTheTarget(t *testing.T) {
	theirs := func(definition Args) []Policy {
		return []Policy{{Name: "theirs", Pattern: ".*", ApplyTo: "all", Priority: 2_000_000, Definition: definition}}
	}
	for name, tc := range map[string]struct {
		observed Topology
		want     string
	}{
		"a classic target": {withTarget(Classic, nil), "queues 1000000 map[]"},
		"a quorum target": {withTarget(Quorum, nil),
			"quorum_queues 1000000 map[dead-letter-strategy:at-least-once delivery-limit:24 overflow:reject-publish]"},
		"a quorum target with a length limit that drops the oldest keeps it": {withTarget(Quorum, Args{"x-max-length": int64(5)}),
			"quorum_queues 1000000 map[delivery-limit:24]"},
		"the same by somebody's policy": {withTarget(Quorum, nil, theirs(Args{"max-length-bytes": int64(5)})...),
			"quorum_queues 2000001 map[delivery-limit:24 max-length-bytes:5]"},
		"a length limit that rejects is as good as none": {withTarget(Quorum, nil, theirs(Args{"max-length": int64(5), "overflow": "reject-publish"})...),
			"quorum_queues 2000001 map[dead-letter-strategy:at-least-once delivery-limit:24 max-length:5 overflow:reject-publish]"},
		"a delivery limit of the target's owner stands": {withTarget(Quorum, Args{"x-delivery-limit": int64(3)}),
			"quorum_queues 1000000 map[dead-letter-strategy:at-least-once overflow:reject-publish]"},
		"a delivery limit of somebody's policy stands": {withTarget(Quorum, nil, theirs(Args{"delivery-limit": int64(3)})...),
			"quorum_queues 2000001 map[dead-letter-strategy:at-least-once delivery-limit:3 overflow:reject-publish]"},
		"somebody's policy that does not apply to the type is outranked and not repeated": {withTarget(Classic, nil, theirs(Args{"delivery-limit": int64(3)})...),
			"queues 2000001 map[]"},
		"at-least-once of somebody's policy clashes with nothing": {withTarget(Quorum, nil, theirs(Args{"dead-letter-strategy": "at-least-once"})...),
			"quorum_queues 2000001 map[dead-letter-strategy:at-least-once delivery-limit:24 overflow:reject-publish]"},
		"no target and nobody's policy": {New(), "queues 1000000 map[]"},
	} {
		t.Run(name, func(t *testing.T) {
			l := Desired(testRequest(), tc.observed)
			p, ok := l.Wanted.Policies["retry-operator.shop.orders"]
			if !ok || p.Definition.String("dead-letter-exchange") != l.DeadLetterExchange || p.Definition.Has("dead-letter-routing-key") || p.Pattern != `^orders\z` {
				t.Fatalf("the policy does not lead up the ladder: %v %v", p, l.Refusals)
			}
			rest := maps.Clone(p.Definition)
			delete(rest, "dead-letter-exchange")
			if got := fmt.Sprintf("%s %d %v", p.ApplyTo, p.Priority, rest); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if target, ok := tc.observed.Queues["orders"]; ok && !p.Matches(target) {
				t.Errorf("a key makes the broker leave the whole policy out")
			}
		})
	}
}

func TestAnOperatorPolicysLengthLimitCountsToo(t *testing.T) {
	observed := withTarget(Quorum, nil)
	observed.OperatorPolicies["cap"] = Policy{Name: "cap", Pattern: ".*", ApplyTo: "queues", Definition: Args{"max-length": int64(5)}}
	q := observed.Queues["orders"]
	q.State = &QueueState{OperatorPolicy: "cap"}
	observed.AddQueue(q)
	if p := Desired(testRequest(), observed).Wanted.Policies["retry-operator.shop.orders"]; p.Definition.Has("overflow") {
		t.Errorf("publishers that relied on drop-head are now rejected: %v", p.Definition)
	}
}

func TestDesiredIsTheSameBytesEachTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := testRequest()
		r.Target = targets.Draw(t, "target")
		r.ParkingLot = DefaultParkingLot(r.Target)
		r.MaxAttempts = rapid.IntRange(1, 32).Draw(t, "maxAttempts")
		r.Delays = make([]time.Duration, rapid.IntRange(min(1, r.MaxAttempts-1), r.MaxAttempts-1).Draw(t, "tiers"))
		for i := range r.Delays {
			r.Delays[i] = time.Duration(rapid.Int64Range(100, 7*24*3600*1000).Draw(t, "delay")) * time.Millisecond
		}
		observed := New()
		if kind := rapid.SampledFrom([]string{"", Classic, Quorum}).Draw(t, "type"); kind != "" {
			observed.AddQueue(Queue{Name: r.Target, Type: kind, State: &QueueState{}})
		}
		first := fmt.Sprintf("%+v", Desired(r, observed))
		for range 3 {
			if again := fmt.Sprintf("%+v", Desired(r, observed)); again != first {
				t.Fatalf("got\n%s\nand\n%s", first, again)
			}
		}
		l := Desired(r, observed)
		for _, name := range slices.Concat(slices.Collect(maps.Keys(l.Wanted.Queues)), slices.Collect(maps.Keys(l.Wanted.Exchanges)), slices.Collect(maps.Keys(l.Wanted.Policies))) {
			if len(name) > 255 {
				t.Fatalf("%q has %d bytes", name, len(name))
			}
		}
		// Everything that a binding or an argument names is wanted too, or is the target.
		for _, b := range l.Wanted.SortedBindings() {
			if _, ok := l.Wanted.Queues[b.Destination]; !ok && b.Destination != r.Target {
				t.Fatalf("%v leads to nothing", b)
			}
			if via := b.Arguments.String("x-last-death-exchange"); via != "" {
				if _, ok := l.Wanted.Exchanges[via]; !ok {
					t.Fatalf("%v waits for an exchange that is not there", b)
				}
			}
		}
		if len(l.Tiers) != r.MaxAttempts-1 {
			t.Fatalf("%d tiers for %d attempts", len(l.Tiers), r.MaxAttempts)
		}
	})
}

func TestAnotherLadderHasAnotherDeadLetterExchange(t *testing.T) {
	base := Desired(testRequest(), New()).DeadLetterExchange
	for name, tc := range map[string]struct {
		change func(*Request)
		same   bool
	}{
		"nothing changes":       {func(*Request) {}, true},
		"another first delay":   {func(r *Request) { r.Delays[0] = time.Second }, false},
		"another last delay":    {func(r *Request) { r.Delays[2] = time.Second }, false},
		"fewer attempts":        {func(r *Request) { r.MaxAttempts, r.Delays = 3, r.Delays[:2] }, false},
		"more attempts":         {func(r *Request) { r.MaxAttempts = 5 }, false},
		"another parking lot":   {func(r *Request) { r.ParkingLot = "failed" }, false},
		"another type of queue": {func(r *Request) { r.QueueType = Classic }, false},
		"another policy":        {func(r *Request) { r.Owner.Name = "other" }, true},
		"retained or not":       {func(r *Request) { r.Retain = true }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := testRequest()
			r.Delays = slices.Clone(r.Delays)
			tc.change(&r)
			if got := Desired(r, New()).DeadLetterExchange; (got == base) != tc.same {
				t.Errorf("got %s, before %s", got, base)
			}
		})
	}
}

func TestOwnPolicy(t *testing.T) {
	r := testRequest()
	ours := Policy{Name: "retry-operator.shop.orders", Pattern: `^orders\z`}
	for name, tc := range map[string]struct {
		policy Policy
		park   *Exchange
		want   bool
	}{
		"name and pattern are ours":               {ours, nil, true},
		"and so is the claim":                     {ours, &Exchange{Name: "orders.retry.park", Arguments: Args{ArgOwner: "cluster-1/shop/orders"}}, true},
		"the same policy of another installation": {ours, &Exchange{Name: "orders.retry.park", Arguments: Args{ArgOwner: "cluster-2/shop/orders"}}, false},
		"another pattern":                         {Policy{Name: ours.Name, Pattern: "^orders$"}, nil, false},
		"another name":                            {Policy{Name: "retry-operator.shop.other", Pattern: ours.Pattern}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			observed := New()
			observed.AddPolicy(tc.policy)
			if tc.park != nil {
				observed.AddExchange(*tc.park)
			}
			if _, got := r.OwnPolicy(observed); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
