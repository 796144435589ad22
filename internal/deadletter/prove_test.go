/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package deadletter_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/deadletter"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

func TestProveFindsNothingOnAWholeLadder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, observed := drawLadder(t)
		for name, top := range map[string]topology.Topology{"observed": observed, "desired": unseen(observed)} {
			if findings := deadletter.Prove(l, top); len(findings) > 0 {
				t.Fatalf("%s: %v", name, findings)
			}
		}
	})
}

// TestProveMissesNothing takes each single object out of a ladder.
func TestProveMissesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, observed := drawLadder(t)
		for _, loss := range losses(l, observed) {
			without := observed.Clone()
			loss.remove(without)
			findings := deadletter.Prove(l, without)
			if loss.idle {
				continue
			}
			if !slices.ContainsFunc(findings, func(f deadletter.Finding) bool { return f.Kind == loss.want }) {
				t.Fatalf("%s is gone: found %v, want a %s", loss.what, findings, loss.want)
			}
		}
	})
}

// loss is one object that is gone, and the kind of finding that tells of it.
type loss struct {
	what   string
	remove func(topology.Topology)
	want   deadletter.FindingKind
	// idle is set when no message depends on the object.
	idle bool
}

func losses(l topology.Ladder, observed topology.Topology) []loss {
	// With a single attempt there is no tier that could come back to a target that is gone,
	// and all that dies falls through to the parking lot, also without bindings.
	single := len(l.Tiers) == 0
	out := []loss{{what: "the policy", want: deadletter.RouteUnreachable, remove: func(t topology.Topology) {
		w := t.Queues[target]
		state := *w.State
		state.Policy = ""
		w.State = &state
		t.AddQueue(w)
	}}}
	for _, e := range topology.Sorted(l.Wanted.Exchanges) {
		out = append(out, loss{
			what: "exchange " + e.Name, want: deadletter.ExchangeMissing, idle: single && e.Name == l.Park,
			remove: func(t topology.Topology) { t.RemoveExchange(e.Name) },
		})
	}
	for _, q := range topology.Sorted(observed.Queues) {
		out = append(out, loss{
			what: "queue " + q.Name, want: deadletter.BindingMissing,
			remove: func(t topology.Topology) { t.RemoveQueue(q.Name) },
		})
	}
	for _, b := range l.Wanted.SortedBindings() {
		out = append(out, loss{
			what: "binding from " + b.Source + " to " + b.Destination, want: deadletter.BindingMissing,
			idle:   single && (b.Source == l.Park || b.Source == l.DeadLetterExchange),
			remove: func(t topology.Topology) { t.Unbind(b) },
		})
	}
	return out
}

func TestProveFindsWhatWasPutInTheWay(t *testing.T) {
	type change = func(topology.Ladder, topology.Topology)
	anotherPolicy := func(definition topology.Args) change {
		return func(_ topology.Ladder, t topology.Topology) {
			t.AddPolicy(topology.Policy{Name: "theirs", Pattern: ".*", ApplyTo: "all", Priority: 1000, Definition: definition})
			w := t.Queues[target]
			w.State.Policy = "theirs"
		}
	}
	for name, tc := range map[string]struct {
		change change
		want   []deadletter.FindingKind
	}{
		"nothing": {
			change: func(topology.Ladder, topology.Topology) {}},
		"a tap behind the alternate exchange, which is no concern of ours": {
			change: func(l topology.Ladder, t topology.Topology) {
				t.AddQueue(queue("tap", topology.Classic, nil))
				t.Bind(bind(l.FirstFailure, "", "tap"))
			}},
		"a tap on a return exchange, which would take all if the target were gone": {
			change: func(l topology.Ladder, t topology.Topology) {
				t.AddQueue(queue("tap", topology.Classic, nil))
				t.Bind(bind(l.Tiers[0].Return, "", "tap"))
			}, want: []deadletter.FindingKind{deadletter.RouteUnreachable}},
		"a tap on a return exchange through an exchange": {
			change: func(l topology.Ladder, t topology.Topology) {
				t.AddQueue(queue("tap", topology.Classic, nil))
				t.AddExchange(exchange("taps", topology.Fanout))
				t.Bind(bindExchange(l.Tiers[0].Return, "", "taps"))
				t.Bind(bind("taps", "", "tap"))
			}, want: []deadletter.FindingKind{deadletter.RouteUnreachable}},
		"a tap on the dead-letter exchange, which shuts its alternate exchange": {
			change: func(l topology.Ladder, t topology.Topology) {
				t.AddQueue(queue("tap", topology.Classic, nil))
				t.Bind(bindHeaders(l.DeadLetterExchange, "tap", nil))
			}, want: []deadletter.FindingKind{deadletter.RouteUnreachable}},
		"a policy of others without a dead-letter exchange": {
			change: anotherPolicy(topology.Args{"max-length": int64(9)}), want: []deadletter.FindingKind{deadletter.RouteUnreachable}},
		"a policy of others that leads to an exchange that is not there": {
			change: anotherPolicy(topology.Args{"dead-letter-exchange": "gone"}), want: []deadletter.FindingKind{deadletter.ExchangeMissing}},
		"a policy of others that leads to a queue of theirs": {
			change: func(l topology.Ladder, t topology.Topology) {
				t.AddQueue(queue("theirs", topology.Classic, nil))
				anotherPolicy(topology.Args{"dead-letter-exchange": "", "dead-letter-routing-key": "theirs"})(l, t)
			}, want: []deadletter.FindingKind{deadletter.RouteUnreachable}},
		"a binding that sends a second copy to the parking lot": {
			change: func(l topology.Ladder, t topology.Topology) { t.Bind(bind(l.FirstFailure, "", parkingLot)) },
			want:   []deadletter.FindingKind{deadletter.RouteUnreachable}},
		"an argument of the target that beats the policy": {
			change: func(_ topology.Ladder, t topology.Topology) {
				w := t.Queues[target]
				w.Arguments = topology.Args{"x-dead-letter-exchange": ""}
				t.AddQueue(w)
			}, want: []deadletter.FindingKind{deadletter.RouteUnreachable}},
		"a return exchange of the wrong type": {
			change: func(l topology.Ladder, t topology.Topology) {
				e := t.Exchanges[l.Tiers[0].Return]
				e.Type = "topic"
				t.AddExchange(e)
			}, want: []deadletter.FindingKind{deadletter.RouteUnreachable}},
		"bindings that ignore what begins with x-": {
			change: func(l topology.Ladder, t topology.Topology) {
				bs := t.Bindings[l.DeadLetterExchange]
				for i := range bs {
					bs[i].Arguments = topology.Args{"x-match": "all", "x-last-death-reason": bs[i].Arguments["x-last-death-reason"]}
				}
			}, want: []deadletter.FindingKind{deadletter.RouteUnreachable, deadletter.BindingMissing}},
	} {
		t.Run(name, func(t *testing.T) {
			l, observed := ladderFor(request(topology.Quorum, time.Second, time.Minute), queue(target, topology.Quorum, nil))
			tc.change(l, observed)
			findings := deadletter.Prove(l, observed)
			if len(findings) == 0 != (len(tc.want) == 0) {
				t.Fatalf("found %v, want %v", findings, tc.want)
			}
			for _, f := range findings {
				if !slices.Contains(tc.want, f.Kind) {
					t.Errorf("found %v, want only %v", f, tc.want)
				}
			}
		})
	}
}

func TestProveTellsThatTheTargetIsNotThereYet(t *testing.T) {
	l := topology.Desired(request(topology.Quorum, time.Second), topology.New())
	findings := deadletter.Prove(l, l.Wanted)
	if len(findings) != 1 || findings[0].Kind != deadletter.RouteUnreachable {
		t.Errorf("found %v, want that nothing can return to the target", findings)
	}
}
