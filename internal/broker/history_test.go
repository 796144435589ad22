/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package broker

import (
	"maps"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// seen is one look at the queue "q".
type seen struct {
	at       time.Duration // since the first look; each look takes a second
	messages *int64
	pending  *int64
	status   string
	policy   string
	limit    int64 // of the policy's definition
	operator int64 // of the operator policy's definition
	bound    bool
	gone     bool
}

func (l seen) snapshot(start time.Time) Snapshot {
	t := topology.New()
	if !l.gone {
		t.AddQueue(topology.Queue{Name: "q", State: &topology.QueueState{
			Messages: l.messages, PendingDeadLetters: l.pending, Status: l.status, Policy: l.policy, OperatorPolicy: "o",
		}})
	}
	t.AddPolicy(topology.Policy{Name: "p", Definition: topology.Args{"max-length": l.limit}})
	t.OperatorPolicies["o"] = topology.Policy{Name: "o", Definition: topology.Args{"max-length": l.operator}}
	if l.bound {
		t.Bind(topology.Binding{Source: "e", Destination: "q"})
	}
	t.Bind(topology.Binding{Source: "e", Destination: "q", ToExchange: true}) // an exchange of the same name
	return Snapshot{Topology: t, TakenAt: start.Add(l.at), finishedAt: start.Add(l.at + time.Second)}
}

func TestHistory(t *testing.T) {
	const s = time.Second
	none, one, two := new(int64(0)), new(int64(1)), new(int64(2))
	for name, tc := range map[string]struct {
		looks                 []seen
		idle, policy, stalled time.Duration
	}{
		"one look proves nothing": {
			looks: []seen{{messages: none, pending: one}},
		},
		"durations are from the end of the first look to the beginning of the last": {
			looks: []seen{{messages: none, pending: one}, {at: 10 * s, messages: none, pending: one}, {at: 20 * s, messages: none, pending: one}},
			idle:  19 * s, policy: 19 * s, stalled: 19 * s,
		},
		"a message ends idleness": {
			looks: []seen{{messages: none}, {at: 10 * s, messages: one}, {at: 20 * s, messages: none}, {at: 30 * s, messages: none}},
			idle:  9 * s, policy: 29 * s,
		},
		"a count that is missing is not zero": {
			looks:  []seen{{messages: none}, {at: 10 * s}, {at: 20 * s}},
			policy: 19 * s,
		},
		"a bound queue is not idle": {
			looks:  []seen{{messages: none, bound: true}, {at: 10 * s, messages: none, bound: true}},
			policy: 9 * s,
		},
		"a queue without its majority is not known to be empty": {
			looks:  []seen{{messages: none, status: "running"}, {at: 10 * s, messages: none, status: "minority"}},
			policy: 9 * s,
		},
		"another policy starts anew": {
			looks:  []seen{{}, {at: 10 * s, policy: "p"}, {at: 20 * s, policy: "p"}},
			policy: 9 * s,
		},
		"another definition of the same policy starts anew": {
			looks:  []seen{{policy: "p", limit: 1}, {at: 10 * s, policy: "p", limit: 2}, {at: 20 * s, policy: "p", limit: 2}},
			policy: 9 * s,
		},
		"another definition of a policy that is not in effect does not": {
			looks:  []seen{{limit: 1}, {at: 10 * s, limit: 2}},
			policy: 9 * s,
		},
		"another operator policy starts anew": {
			looks: []seen{{operator: 1}, {at: 10 * s, operator: 2}},
		},
		"more pending dead letters are still stalled": {
			looks:  []seen{{pending: one}, {at: 10 * s, pending: two}},
			policy: 9 * s, stalled: 9 * s,
		},
		"fewer pending dead letters are progress": {
			looks:  []seen{{pending: two}, {at: 10 * s, pending: one}, {at: 20 * s, pending: one}},
			policy: 19 * s, stalled: 9 * s,
		},
		"unknown pending dead letters prove no stall": {
			looks:  []seen{{pending: one}, {at: 10 * s}, {at: 20 * s, pending: one}},
			policy: 19 * s,
		},
		"none pending is no stall": {
			looks:  []seen{{pending: one}, {at: 10 * s, pending: none}},
			policy: 9 * s,
		},
		"a queue that was gone starts anew": {
			looks: []seen{{messages: none}, {at: 10 * s, gone: true}, {at: 20 * s, messages: none}},
		},
		"a gap that is too long starts anew": {
			looks: []seen{{messages: none, pending: one}, {at: 61 * s, messages: none, pending: one}},
		},
		"a gap that is just short enough does not": {
			looks: []seen{{messages: none, pending: one}, {at: 60 * s, messages: none, pending: one}},
			idle:  59 * s, policy: 59 * s, stalled: 59 * s,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			var h history
			var last Snapshot
			for _, l := range tc.looks {
				last = l.snapshot(start)
				h = h.next(last, time.Minute)
			}
			h.tell(last.Topology)
			state := last.Topology.Queues["q"].State
			g.Expect(state.IdleFor).To(Equal(tc.idle), "IdleFor")
			g.Expect(state.PolicyFor).To(Equal(tc.policy), "PolicyFor")
			g.Expect(state.StalledFor).To(Equal(tc.stalled), "StalledFor")
		})
	}
}

func TestBackoff(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	err := &Error{Class: Unreachable}
	var b backoff
	g.Expect(b.active(now)).To(BeFalse())
	for _, want := range []int{10, 20, 40, 40, 40} {
		low := b.next(err, now, 10*time.Second, 0)
		g.Expect(low.until.Sub(now)).To(Equal(time.Duration(want*800) * time.Millisecond))
		b = b.next(err, now, 10*time.Second, 0.5)
		g.Expect(b.until.Sub(now)).To(Equal(time.Duration(want) * time.Second))
		g.Expect(b.active(b.until.Add(-1))).To(BeTrue())
		g.Expect(b.active(b.until)).To(BeFalse())
	}
}

// A report of the policy in effect lags behind the policies themselves, so that it is
// believed against the broker's own rules only once it has stayed for longer.
func TestADisputedPolicyIsBelievedOnceItStays(t *testing.T) {
	const s = time.Second
	for name, tc := range map[string]struct {
		reports map[time.Duration]string // "" says that no policy is in effect, - that there is no dispute
		want    string
		open    bool // whether the policy in effect is still unconfirmed
	}{
		"a report that is new is not believed":               {map[time.Duration]string{0: ""}, "p", true},
		"one that may lag is not":                            {map[time.Duration]string{0: "", 10 * s: ""}, "p", true},
		"one that has stayed is":                             {map[time.Duration]string{0: "", 10 * s: "", 20 * s: ""}, "", false},
		"one that has changed is new":                        {map[time.Duration]string{0: "", 10 * s: "", 20 * s: "other"}, "p", true},
		"one that came back after a truce is new":            {map[time.Duration]string{0: "", 10 * s: "-", 20 * s: ""}, "p", true},
		"a truce confirms":                                   {map[time.Duration]string{0: "", 10 * s: "-"}, "p", false},
		"another's policy that stays is in effect, not ours": {map[time.Duration]string{0: "other", 20 * s: "other"}, "other", false},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			var h history
			var last Snapshot
			for _, at := range slices.Sorted(maps.Keys(tc.reports)) {
				last = seen{at: at, policy: "p"}.snapshot(start)
				if report := tc.reports[at]; report != "-" {
					last.disputed = map[string]string{"q": report}
					last.Topology.Queues["q"].State.PolicyUnconfirmed = true
				}
				h = h.next(last, time.Minute)
			}
			g, state := NewWithT(t), last.Topology.Queues["q"].State
			g.Expect(state.Policy).To(Equal(tc.want))
			g.Expect(state.PolicyUnconfirmed).To(Equal(tc.open))
		})
	}
}

func TestADisputedPolicyIsUnconfirmed(t *testing.T) {
	ours := topology.PolicyPrefix + "q"
	for name, tc := range map[string]struct {
		queue    string
		reported name
		want     string
		disputed bool
	}{
		"reported as ruled":              {"q", name{known: true, value: ours}, ours, false},
		"reported to have none":          {"q", name{known: true}, ours, true},
		"reported to have another":       {"q", name{known: true, value: "other"}, ours, true},
		"not reported yet":               {"q", name{}, ours, false},
		"a queue of others is not ruled": {"other", name{known: true, value: "gone"}, "gone", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			l := look{
				into: topology.New(), disputed: map[string]string{},
				ours: map[string]string{topology.ExactPattern("q"): ours},
			}
			l.into.AddPolicy(topology.Policy{Name: ours, Pattern: topology.ExactPattern("q"), ApplyTo: "queues", Priority: 1})
			s := l.stateOf(topology.Queue{Name: tc.queue, Type: topology.Classic, Durable: true}, queue{Policy: tc.reported})
			g.Expect(s.Policy).To(Equal(tc.want))
			g.Expect(s.PolicyUnconfirmed).To(Equal(tc.disputed))
			if tc.disputed {
				g.Expect(l.disputed).To(HaveKeyWithValue(tc.queue, tc.reported.value))
			} else {
				g.Expect(l.disputed).To(BeEmpty())
			}
		})
	}
}
