/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package deadletter_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/deadletter"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// change is something about one queue of an observed ladder.
type change struct {
	queue     string
	arguments topology.Args
	// policy is one of somebody else, in effect on the queue; operator an operator policy.
	policy, operator topology.Args
	state            func(*topology.QueueState)
}

func (c change) apply(t topology.Topology) {
	q := t.Queues[c.queue]
	if q.Arguments = maps.Clone(q.Arguments); q.Arguments == nil {
		q.Arguments = topology.Args{}
	}
	maps.Copy(q.Arguments, c.arguments)
	if c.policy != nil {
		q.State.Policy = "theirs"
		t.AddPolicy(topology.Policy{Name: "theirs", Pattern: ".*", ApplyTo: "all", Priority: 1000, Definition: c.policy})
	}
	if c.operator != nil {
		q.State.OperatorPolicy = "house rule"
		t.OperatorPolicies["house rule"] = topology.Policy{Name: "house rule", Pattern: ".*", ApplyTo: "all", Definition: c.operator}
	}
	if c.state != nil {
		c.state(q.State)
	}
	t.AddQueue(q)
}

func TestHazards(t *testing.T) {
	const tier = target + ".retry.1.10s"
	type args = topology.Args
	status := func(s string) func(*topology.QueueState) {
		return func(q *topology.QueueState) { q.Status = s }
	}
	stalled := func(d time.Duration) func(*topology.QueueState) {
		return func(q *topology.QueueState) { q.StalledFor, q.PendingDeadLetters = d, new(int64(3)) }
	}
	for name, tc := range map[string]struct {
		tiers, target string // types, quorum when empty
		changes       []change
		want          []deadletter.HazardKind
	}{
		"a ladder of quorum queues is safe": {},

		"a target without a policy": {
			changes: []change{{queue: target, state: func(q *topology.QueueState) { q.Policy = "" }}},
			want:    []deadletter.HazardKind{deadletter.PolicyShadowed}},
		"a target under a policy of others": {
			changes: []change{{queue: target, policy: args{"dead-letter-exchange": "theirs"}}},
			want:    []deadletter.HazardKind{deadletter.PolicyShadowed}},
		"a tier whose messages a policy lets die early": {
			changes: []change{{queue: tier, policy: args{"message-ttl": int64(9_999)}}},
			want:    []deadletter.HazardKind{deadletter.PolicyShadowed}},
		"a tier whose messages an operator policy lets die early": {
			changes: []change{{queue: tier, operator: args{"message-ttl": int64(1)}}},
			want:    []deadletter.HazardKind{deadletter.PolicyShadowed}},
		"a tier that a policy bounds": {
			changes: []change{{queue: tier, policy: args{"max-length-bytes": int64(9)}}},
			want:    []deadletter.HazardKind{deadletter.PolicyShadowed}},
		"a tier that a policy deletes when idle": {
			changes: []change{{queue: tier, policy: args{"expires": int64(9)}}},
			want:    []deadletter.HazardKind{deadletter.PolicyShadowed}},
		"a policy on a tier that changes nothing is no hazard": {
			changes: []change{{queue: tier, policy: args{"message-ttl": int64(3_600_000), "dead-letter-exchange": "theirs"}}}},
		"a policy of others with less priority than ours is no hazard": {
			changes: []change{{queue: target, policy: args{}, state: func(q *topology.QueueState) { q.Policy = "retry-operator.shop.orders" }}}},

		"a queue without its majority": {
			changes: []change{{queue: tier, state: status("minority")}},
			want:    []deadletter.HazardKind{deadletter.QueueUnavailable}},
		"a target whose node is down": {
			changes: []change{{queue: target, state: status("down")}},
			want:    []deadletter.HazardKind{deadletter.QueueUnavailable}},
		"a parking lot that has stopped": {
			changes: []change{{queue: parkingLot, state: status("stopped")}},
			want:    []deadletter.HazardKind{deadletter.QueueUnavailable}},
		"queues in flow, idle, or of which nothing is said are available": {
			changes: []change{{queue: tier, state: status("flow")}, {queue: target, state: status("idle")}, {queue: parkingLot, state: status("")}}},

		"dead letters that nobody has taken for a minute": {
			changes: []change{{queue: target, state: stalled(time.Minute)}},
			want:    []deadletter.HazardKind{deadletter.DeadLettersStalled}},
		"dead letters that a tier can't get rid of": {
			changes: []change{{queue: tier, state: stalled(time.Hour)}},
			want:    []deadletter.HazardKind{deadletter.DeadLettersStalled}},
		"dead letters on their way are not stalled": {
			changes: []change{{queue: target, state: stalled(time.Minute - 1)}}},
		"dead letters that the broker says nothing about are not stalled": {
			changes: []change{{queue: target, state: func(q *topology.QueueState) { q.StalledFor, q.PendingDeadLetters = time.Hour, nil }}}},

		"a parking lot whose messages a policy lets die": {
			changes: []change{{queue: parkingLot, policy: args{"message-ttl": int64(1)}}},
			want:    []deadletter.HazardKind{deadletter.ParkingLotDrops}},
		"a parking lot that an operator policy bounds": {
			changes: []change{{queue: parkingLot, operator: args{"max-length": int64(1)}}},
			want:    []deadletter.HazardKind{deadletter.ParkingLotDrops}},
		"a parking lot that a policy deletes when idle": {
			changes: []change{{queue: parkingLot, policy: args{"expires": int64(1)}}},
			want:    []deadletter.HazardKind{deadletter.ParkingLotDrops}},
		"a policy on the parking lot that keeps everything is no hazard": {
			changes: []change{{queue: parkingLot, policy: args{"overflow": "reject-publish"}}}},
		"a parking lot that is the target of another ladder": {
			changes: []change{{queue: parkingLot, policy: args{"dead-letter-exchange": "x"}}},
			want:    []deadletter.HazardKind{deadletter.ParkingLotDrops}},
		"a delivery limit on the parking lot, which beats none": {
			changes: []change{{queue: parkingLot, policy: args{"delivery-limit": int64(5)}}},
			want:    []deadletter.HazardKind{deadletter.ParkingLotDrops}},
		"a policy that takes a tier off at-least-once": {
			changes: []change{{queue: tier, policy: args{"overflow": "drop-head"}}},
			want:    []deadletter.HazardKind{deadletter.PolicyShadowed}},
		"a policy that changes the routing key of what returns": {
			changes: []change{{queue: tier, policy: args{"dead-letter-exchange": "x", "dead-letter-routing-key": "dead"}}},
			want:    []deadletter.HazardKind{deadletter.PolicyShadowed}},
		"an operator policy that takes the target off at-least-once": {
			changes: []change{{queue: target, operator: args{"overflow": "drop-head"}}},
			want:    []deadletter.HazardKind{deadletter.TargetHasOverflow}},

		"a delivery limit below the attempts": {
			changes: []change{{queue: target, arguments: args{"x-delivery-limit": int64(2)}}},
			want:    []deadletter.HazardKind{deadletter.DeliveryLimitBelowAttempts}},
		"a delivery limit below the attempts by operator policy": {
			changes: []change{{queue: target, operator: args{"delivery-limit": int64(2)}}},
			want:    []deadletter.HazardKind{deadletter.DeliveryLimitBelowAttempts}},
		"a delivery limit of all attempts is no hazard": {
			changes: []change{{queue: target, arguments: args{"x-delivery-limit": int64(3)}}}},
		"no delivery limit is no hazard": {
			changes: []change{{queue: target, arguments: args{"x-delivery-limit": int64(-1)}, operator: args{"delivery-limit": int64(-1)}}}},

		"a target that drops the oldest when full": {
			changes: []change{{queue: target, arguments: args{"x-max-length": int64(9)}}},
			want:    []deadletter.HazardKind{deadletter.TargetHasOverflow}},
		"a target that refuses the newest when full is no hazard": {
			changes: []change{{queue: target, arguments: args{"x-max-length": int64(9), "x-overflow": "reject-publish"}}}},

		"a classic target": {
			target: topology.Classic,
			want:   []deadletter.HazardKind{deadletter.ClassicTarget}},
		"classic tiers": {
			tiers: topology.Classic,
			want:  []deadletter.HazardKind{deadletter.ClassicTiers}},
		"everything classic": {
			target: topology.Classic, tiers: topology.Classic,
			want: []deadletter.HazardKind{deadletter.ClassicTarget, deadletter.ClassicTiers}},

		"several at once, the most pressing first": {
			target: topology.Classic,
			changes: []change{
				{queue: parkingLot, operator: args{"max-length": int64(1)}},
				{queue: target, state: func(q *topology.QueueState) { q.Policy, q.Status = "", "down" }},
			},
			want: []deadletter.HazardKind{deadletter.PolicyShadowed, deadletter.QueueUnavailable, deadletter.ParkingLotDrops, deadletter.ClassicTarget}},
	} {
		t.Run(name, func(t *testing.T) {
			l, observed := hazardLadder(tc.tiers, tc.target, tc.changes)
			for _, c := range tc.changes {
				c.apply(observed)
			}
			var got []deadletter.HazardKind
			for _, h := range deadletter.Hazards(l, observed) {
				got = append(got, h.Kind)
				if h.Message == "" {
					t.Errorf("%s says nothing", h.Kind)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("hazards %v, want %v", got, tc.want)
			}
		})
	}
}

// hazardLadder is declared for a target that has its arguments already, which the ladder's
// policy takes into account.
func hazardLadder(tiers, targetType string, changes []change) (topology.Ladder, topology.Topology) {
	w := queue(target, orQuorum(targetType), topology.Args{})
	for _, c := range changes {
		if c.queue == target {
			maps.Copy(w.Arguments, c.arguments)
		}
	}
	return ladderFor(request(orQuorum(tiers), 10*time.Second, 10*time.Second), w)
}

func orQuorum(queueType string) string {
	if queueType == "" {
		return topology.Quorum
	}
	return queueType
}

func TestHazardsLookOnlyAtQueuesThatAreThere(t *testing.T) {
	l, observed := hazardLadder("", "", nil)
	observed.RemoveQueue(l.Tiers[0].Queue)
	observed.RemoveQueue(parkingLot)
	if got := deadletter.Hazards(l, observed); len(got) > 0 {
		t.Errorf("hazards %v of queues that are gone; Prove tells of those", got)
	}
}
