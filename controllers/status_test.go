/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package controllers

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/broker"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/deadletter"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/plan"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

var start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func examplePolicy() *v1alpha1.RetryPolicy {
	return &v1alpha1.RetryPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "u1", Generation: 3},
		Spec: v1alpha1.RetryPolicySpec{
			Queue:       "orders",
			MaxAttempts: 3,
			Backoff:     v1alpha1.Backoff{Tiers: []v1alpha1.Tier{{Delay: metav1.Duration{Duration: time.Second}}}},
			ParkingLot:  v1alpha1.ParkingLot{Alert: v1alpha1.ParkingLotAlert{Messages: 10}},
		},
	}
}

// settled is a scope in which all is as it should be, with counts of tiers and parking lot.
func settled(tiers, parked *int64) *scope {
	s := &scope{policy: examplePolicy(), now: start, vhost: "shop"}
	observed := topology.New()
	observed.AddQueue(topology.Queue{Name: "orders", Type: topology.Quorum, Durable: true, State: &topology.QueueState{Policy: "retry-operator.shop.orders"}})
	request := topology.RequestFor(s.policy, "test")
	s.ladder = topology.Desired(request, observed)
	for _, q := range s.ladder.Wanted.Queues {
		q.State = &topology.QueueState{Messages: tiers}
		if q.Name == "orders.parked" {
			q.State = &topology.QueueState{Messages: parked}
		}
		observed.AddQueue(q)
	}
	for _, e := range s.ladder.Wanted.Exchanges {
		observed.AddExchange(e)
	}
	for _, b := range s.ladder.Wanted.SortedBindings() {
		observed.Bind(b)
	}
	for _, p := range s.ladder.Wanted.Policies {
		observed.AddPolicy(p)
	}
	s.snapshot = &broker.Snapshot{About: broker.About{Version: "4.3.6"}, Topology: observed, TakenAt: start}
	s.plan = plan.Compute(s.ladder, observed)
	s.findings = deadletter.Prove(s.ladder, observed)
	s.hazards = deadletter.Hazards(s.ladder, observed)
	return s
}

func TestConditionsSayWhatWasObserved(t *testing.T) {
	none, some, many := new(int64(0)), new(int64(5)), new(int64(10))
	cases := map[string]struct {
		scope func() *scope
		want  map[string]string
	}{
		"all is well": {
			func() *scope { return settled(none, some) },
			map[string]string{
				"Ready": "True RetriesActive", "TopologyReady": "True TopologyApplied", "BindingsHealthy": "True AllPathsProven",
				"DeadLetteringSafe": "True NoLossPossible", "ParkingLotHealthy": "True BelowThresholds",
			},
		},
		"the parking lot reaches its alert, which is no reason to be not ready": {
			func() *scope { return settled(none, many) },
			map[string]string{"Ready": "True RetriesActive", "ParkingLotHealthy": "False DepthThresholdExceeded"},
		},
		"a count that the broker does not give is unknown": {
			func() *scope { return settled(none, nil) },
			map[string]string{"Ready": "True RetriesActive", "ParkingLotHealthy": "Unknown UnknownCount"},
		},
		"a broker that is away leaves everything unknown": {
			func() *scope {
				return &scope{policy: examplePolicy(), failure: &failure{v1alpha1.ReasonBrokerUnreachable, "away"}}
			},
			map[string]string{
				"Ready": "Unknown BrokerUnreachable", "TopologyReady": "Unknown BrokerUnreachable", "BindingsHealthy": "Unknown NotObserved",
				"DeadLetteringSafe": "Unknown NotObserved", "ParkingLotHealthy": "Unknown NotObserved",
			},
		},
		"a wrong password is a failure": {
			func() *scope {
				return &scope{policy: examplePolicy(), failure: &failure{v1alpha1.ReasonAuthenticationFailed, "no"}}
			},
			map[string]string{"Ready": "False AuthenticationFailed", "BindingsHealthy": "Unknown NotObserved"},
		},
		"a claimed target says nothing about paths": {
			func() *scope {
				s := settled(none, none)
				s.plan = plan.Plan{Conflicts: []plan.Conflict{{Kind: plan.TargetClaimed, Message: "taken"}}}
				return s
			},
			map[string]string{"Ready": "False TargetClaimed", "BindingsHealthy": "Unknown NotObserved"},
		},
		"what was just applied is not yet true": {
			func() *scope {
				s := settled(none, none)
				s.report.Applied = []plan.Step{{Action: plan.PutPolicy, Reason: "policy missing"}}
				return s
			},
			map[string]string{"Ready": "False Applying", "TopologyReady": "False Applying"},
		},
		"earlier parts that still hold messages": {
			func() *scope {
				s := settled(none, none)
				s.plan.Waits = []plan.Wait{{Object: "orders.retry.3.1m", Reason: "queue holds 3 messages"}}
				return s
			},
			map[string]string{"Ready": "False Migrating"},
		},
		"a missing target": {
			func() *scope {
				s := settled(none, none)
				s.ladder.TargetFound = false
				return s
			},
			map[string]string{"Ready": "False TargetQueueNotFound", "DeadLetteringSafe": "Unknown NotObserved"},
		},
		"a path that leads nowhere": {
			func() *scope {
				s := settled(none, none)
				s.findings = []deadletter.Finding{{Kind: deadletter.BindingMissing, Message: "gone"}}
				return s
			},
			map[string]string{"Ready": "False BindingMissing", "TopologyReady": "True TopologyApplied", "BindingsHealthy": "False BindingMissing"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := statusOf(c.scope())
			for kind, want := range c.want {
				condition := meta.FindStatusCondition(got.Conditions, kind)
				g.Expect(condition).NotTo(BeNil(), kind)
				g.Expect(string(condition.Status)+" "+condition.Reason).To(Equal(want), kind)
				g.Expect(condition.ObservedGeneration).To(BeEquivalentTo(3))
				g.Expect(condition.Message).NotTo(BeEmpty())
			}
		})
	}
}

func TestCountsAreAbsentWhenUnknown(t *testing.T) {
	g := NewWithT(t)
	known := statusOf(settled(new(int64(2)), new(int64(1))))
	g.Expect(known.Retrying).To(HaveValue(BeEquivalentTo(4)))
	g.Expect(known.Parked.Messages).To(HaveValue(BeEquivalentTo(1)))
	g.Expect(known.Tiers).To(HaveLen(2))

	unknown := statusOf(settled(nil, nil))
	g.Expect(unknown.Retrying).To(BeNil())
	g.Expect(unknown.Parked.Messages).To(BeNil())
	g.Expect(unknown.Tiers[0].Messages).To(BeNil())
}

func TestStatusWritesAreRare(t *testing.T) {
	zero, few, more := new(int64(0)), new(int64(3)), new(int64(4))
	cases := map[string]struct {
		before, after *scope
		later         time.Duration
		want          bool
	}{
		"nothing has changed":                       {settled(zero, few), settled(zero, few), 0, false},
		"only the time of the look has changed":     {settled(zero, few), settled(zero, few), 15 * time.Second, false},
		"a number has changed":                      {settled(zero, few), settled(zero, more), 15 * time.Second, false},
		"a number has changed and a minute is over": {settled(zero, few), settled(zero, more), time.Minute, true},
		"a count has left zero":                     {settled(zero, zero), settled(zero, few), time.Second, true},
		"a count has become unknown":                {settled(zero, few), settled(zero, nil), time.Second, true},
		"a condition has turned":                    {settled(zero, few), settled(zero, new(int64(10))), time.Second, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			before := statusOf(c.before)
			c.after.policy.Status = before
			c.after.snapshot.TakenAt = start.Add(c.later)
			after := statusOf(c.after)
			NewWithT(t).Expect(worthWriting(&before, &after, start.Add(c.later), time.Minute)).To(Equal(c.want))
		})
	}
}

func TestOldBrokersAreNotSupported(t *testing.T) {
	for v, want := range map[string]bool{
		"3.12.14": false, "3.13.0": false, "3.13.2": false, "3.13.3": true, "3.13.3-rc.1": true, "4.0.5": true, "4.3.6+deb1": true, "unreadable": true,
	} {
		NewWithT(t).Expect(supported(v)).To(Equal(want), v)
	}
}

func TestPaceEndsTheHurryOfWhoeverIsUndoneAgainAndAgain(t *testing.T) {
	g := NewWithT(t)
	var p pace
	policy := examplePolicy()
	for range maxHurry {
		p.wrote(policy, start)
		g.Expect(p.hurry(policy)).To(BeTrue())
	}
	p.wrote(policy, start)
	g.Expect(p.hurry(policy)).To(BeFalse())
	p.settled(policy)
	g.Expect(p.hurry(policy)).To(BeTrue())
	g.Expect(p.notBefore(policy)).To(Equal(start))

	g.Expect(p.failing(policy, start, true)).To(Equal(start))
	g.Expect(p.failing(policy, start.Add(time.Hour), true)).To(Equal(start))
	g.Expect(p.failing(policy, start.Add(time.Hour), false)).To(BeZero())
	p.forget(client.ObjectKeyFromObject(policy))
	g.Expect(p.notBefore(policy)).To(BeZero())
}

func TestTheOlderPolicyGoesFirst(t *testing.T) {
	g := NewWithT(t)
	at := func(name string, seconds int) *v1alpha1.RetryPolicy {
		return &v1alpha1.RetryPolicy{ObjectMeta: metav1.ObjectMeta{
			Namespace: "a", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(start.Add(time.Duration(seconds) * time.Second))}}
	}
	g.Expect(older(at("z", 0), at("b", 1))).To(BeTrue())
	g.Expect(older(at("b", 1), at("z", 0))).To(BeFalse())
	g.Expect(older(at("b", 1), at("z", 1))).To(BeTrue())
}
