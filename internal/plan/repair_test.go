/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/plan"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

const (
	ladderTier   = "orders-0000.retry.2.1m"
	ladderReturn = "orders-0000.retry.1.return"
	ladderPark   = "orders-0000.retry.park"
)

// stepTexts are the steps of a plan, without reasons.
func stepTexts(p plan.Plan) []string {
	out := make([]string, 0, len(p.Steps))
	for _, s := range p.Steps {
		out = append(out, s.String())
	}
	return out
}

// TestWhatSomebodyChangesInOurPolicyIsPutBack: a changed pattern could cover other queues.
func TestWhatSomebodyChangesInOurPolicyIsPutBack(t *testing.T) {
	for name, change := range map[string]func(*topology.Policy){
		"its pattern":        func(p *topology.Policy) { p.Pattern = "^orders" },
		"its priority":       func(p *topology.Policy) { p.Priority = 0 },
		"what it applies to": func(p *topology.Policy) { p.ApplyTo = "all" },
	} {
		t.Run(name, func(t *testing.T) {
			request, observed := crowded(1)
			want := observed.Policies[request.PolicyName()]
			changed := want
			change(&changed)
			observed.AddPolicy(changed)
			p := plan.Compute(topology.Desired(request, observed), observed)
			if len(p.Steps) != 1 || p.Steps[0].Action != plan.PutPolicy || !p.Steps[0].Policy.Equal(want) {
				t.Errorf("got %v %v", stepTexts(p), p.Conflicts)
			}
		})
	}
}

// TestDeletionParksWhateverHasComeUpMeanwhile: a policy of somebody else that would be
// refused now does not keep what still dies from being parked.
func TestDeletionParksWhateverHasComeUpMeanwhile(t *testing.T) {
	request, observed := crowded(1)
	observed.AddPolicy(topology.Policy{Name: "theirs", Pattern: ".*", ApplyTo: "queues", Priority: 1,
		Definition: topology.Args{topology.KeyDeadLetterExchange: "elsewhere"}})
	request.Deleting = true
	p := plan.Compute(topology.Desired(request, observed), observed)
	if len(p.Steps) != 1 || p.Steps[0].Action != plan.PutPolicy ||
		p.Steps[0].Policy.Definition.String(topology.KeyDeadLetterExchange) != ladderPark {
		t.Errorf("got %v %v", stepTexts(p), p.Conflicts)
	}
}

func TestConflictsDoNotStopTheRepairOfWhatIsOurs(t *testing.T) {
	for name, tc := range map[string]struct {
		conflict func(*topology.Request, topology.Topology)
		want     []string
	}{
		"somebody's policy: all of the ladder": {
			func(_ *topology.Request, t topology.Topology) {
				t.AddPolicy(topology.Policy{Name: "theirs", Pattern: ".*", ApplyTo: "queues",
					Definition: topology.Args{topology.KeyDeadLetterExchange: "elsewhere"}})
			},
			[]string{"declare exchange " + ladderReturn, "bind " + ladderReturn + " -> orders-0000"},
		},
		"a foreign queue under a new name: the ways home": {
			func(r *topology.Request, t topology.Topology) {
				t.AddQueue(topology.Queue{Name: "foreign", Type: topology.Quorum, Durable: true})
				r.ParkingLot = "foreign"
			},
			[]string{"declare exchange " + ladderReturn, "bind " + ladderReturn + " -> orders-0000"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			request, observed := crowded(1)
			observed.RemoveExchange(ladderReturn)
			tc.conflict(&request, observed)
			p := plan.Compute(topology.Desired(request, observed), observed)
			if len(p.Conflicts) == 0 {
				t.Error("no conflict")
			}
			for _, s := range tc.want {
				if !slices.Contains(stepTexts(p), s) {
					t.Errorf("%q is not among %q", s, stepTexts(p))
				}
			}
		})
	}
}

// TestWhatTimeDoesNotEndIsBlocked: whoever waits for it has to give up some day.
func TestWhatTimeDoesNotEndIsBlocked(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(topology.Topology)
		blocked bool
	}{
		"messages in a tier return":             {func(t topology.Topology) { count(t, new(int64(3))) }, false},
		"a count that the broker does not give": {func(t topology.Topology) { count(t, nil) }, true},
		"somebody's policy that leads to the park": {func(t topology.Topology) {
			count(t, new(int64(3)))
			t.AddPolicy(topology.Policy{Name: "copy", Pattern: "^other$", ApplyTo: "queues", Definition: topology.Args{
				topology.KeyDeadLetterExchange: deadLetterExchange(t)}})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			request, observed := crowded(1)
			request.Deleting = true
			target := observed.Queues["orders-0000"]
			target.State = &topology.QueueState{Policy: request.PolicyName(), PolicyFor: time.Hour, PendingDeadLetters: new(int64(0))}
			observed.AddQueue(target)
			tc.change(observed)
			own := observed.Policies[request.PolicyName()]
			own.Definition = topology.Args{topology.KeyDeadLetterExchange: ladderPark}
			observed.AddPolicy(own)
			p := plan.Compute(topology.Desired(request, observed), observed)
			blocked := slices.ContainsFunc(p.Waits, func(w plan.Wait) bool { return w.Blocked })
			if len(p.Waits) == 0 || blocked != tc.blocked {
				t.Errorf("blocked %v: %+v", blocked, p.Waits)
			}
		})
	}
}

func count(t topology.Topology, n *int64) {
	q := t.Queues[ladderTier]
	q.State = &topology.QueueState{Messages: n}
	t.AddQueue(q)
}

func deadLetterExchange(t topology.Topology) string {
	for name, e := range t.Exchanges {
		if e.Arguments.RoleOf() == topology.RoleDeadLetter {
			return name
		}
	}
	return ""
}
