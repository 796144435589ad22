/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package deadletter_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/deadletter"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

const (
	rejected = deadletter.Rejected
	expired  = deadletter.Expired
	maxLen   = deadletter.MaxLen
	limit    = deadletter.DeliveryLimit
)

// TestCycles: W dies into T, T expires into W. Whether RabbitMQ lets the message back in
// depends on W's most recent death alone.
func TestCycles(t *testing.T) {
	naive := build(
		queue("w", topology.Quorum, topology.Args{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "t"}),
		queue("t", topology.Quorum, topology.Args{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "w"}),
		queue("u", topology.Quorum, topology.Args{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "u"}),
	)
	type deaths = []deadletter.Death
	for name, tc := range map[string]struct {
		deaths deadletter.Death
		before deaths
		dies   deadletter.Death
		want   []string
	}{
		"rejected, then waited: it returns":                 {before: deaths{{"w", rejected}}, dies: deadletter.Death{Queue: "t", Reason: expired}, want: []string{"w"}},
		"expired, then waited: a cycle":                     {before: deaths{{"w", expired}}, dies: deadletter.Death{Queue: "t", Reason: expired}},
		"dropped for length, then waited: a cycle":          {before: deaths{{"w", maxLen}}, dies: deadletter.Death{Queue: "t", Reason: expired}},
		"over the delivery limit, then waited: a cycle":     {before: deaths{{"w", limit}}, dies: deadletter.Death{Queue: "t", Reason: expired}},
		"an earlier rejection does not save an expired one": {before: deaths{{"w", expired}, {"t", expired}, {"w", rejected}}, dies: deadletter.Death{Queue: "t", Reason: expired}},
		"a later rejection saves an expired one":            {before: deaths{{"w", rejected}, {"t", expired}, {"w", expired}}, dies: deadletter.Death{Queue: "t", Reason: expired}, want: []string{"w"}},
		"a rejection in the tier saves it":                  {before: deaths{{"w", expired}}, dies: deadletter.Death{Queue: "t", Reason: rejected}, want: []string{"w"}},
		"a rejection somewhere in between saves it":         {before: deaths{{"x", rejected}, {"w", expired}}, dies: deadletter.Death{Queue: "t", Reason: expired}, want: []string{"w"}},
		"a rejection before W's death does not":             {before: deaths{{"w", expired}, {"x", rejected}}, dies: deadletter.Death{Queue: "t", Reason: expired}},
		"a queue that it has never died in takes it":        {before: deaths{{"x", expired}, {"y", expired}}, dies: deadletter.Death{Queue: "t", Reason: expired}, want: []string{"w"}},
		"expired into the same queue: a cycle at once":      {dies: deadletter.Death{Queue: "u", Reason: expired}},
		"rejected into the same queue: it returns":          {dies: deadletter.Death{Queue: "u", Reason: rejected}, want: []string{"u"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := deadletter.Publish("", tc.dies.Queue, nil)
			m.Deaths = tc.before
			fate := deadletter.Die(naive, tc.dies.Queue, m, tc.dies.Reason)
			if !slices.Equal(fate.Queues(), tc.want) {
				t.Errorf("arrives in %q, want %q", fate.Queues(), tc.want)
			}
			if wantLoss := map[bool]deadletter.Loss{true: deadletter.Cycle}[tc.want == nil]; fate.Loss != wantLoss {
				t.Errorf("loss %q, want %q", fate.Loss, wantLoss)
			}
		})
	}
}

func TestCycleDropsOneCopyOfTwo(t *testing.T) {
	top := build(
		queue("w", topology.Classic, topology.Args{"x-dead-letter-exchange": "d"}),
		queue("p", topology.Classic, nil),
		exchange("d", "fanout"), bind("d", "", "w"), bind("d", "", "p"),
	)
	fate := deadletter.Die(top, "w", deadletter.Publish("", "w", nil), expired)
	if got := fate.Queues(); !slices.Equal(got, []string{"p"}) || fate.Loss != "" {
		t.Errorf("arrives in %q with loss %q, want it in p alone", got, fate.Loss)
	}
}

// TestDeathsAreWrittenDown: one entry for each queue and reason, the most recent first.
func TestDeathsAreWrittenDown(t *testing.T) {
	top := build(
		queue("w", topology.Classic, topology.Args{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "t"}),
		queue("t", topology.Classic, topology.Args{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "w"}),
	)
	m := deadletter.Publish("shop", "order", topology.Args{"color": "red"})
	for _, d := range []deadletter.Death{{Queue: "w", Reason: rejected}, {Queue: "t", Reason: expired}, {Queue: "w", Reason: rejected}} {
		m = deadletter.Die(top, d.Queue, m, d.Reason).Deliveries[0].Message
	}
	if want := []deadletter.Death{{Queue: "w", Reason: rejected}, {Queue: "t", Reason: expired}}; !slices.Equal(m.Deaths, want) {
		t.Errorf("deaths %v, want %v", m.Deaths, want)
	}
	want := topology.Args{
		"color":               "red",
		"x-first-death-queue": "w", "x-first-death-reason": "rejected", "x-first-death-exchange": "shop",
		"x-last-death-queue": "w", "x-last-death-reason": "rejected", "x-last-death-exchange": "",
	}
	if !m.Headers.Equal(want) {
		t.Errorf("headers %v, want %v", m.Headers, want)
	}
}

func TestForgedDeathHeadersAreOverwritten(t *testing.T) {
	l, observed := ladderFor(request(topology.Quorum, 1e9, 2e9, 3e9), queue(target, topology.Quorum, nil))
	for name, forged := range map[string]topology.Args{
		"as if it had been through the last tier": {"x-last-death-reason": "rejected", "x-last-death-exchange": l.Tiers[2].Return},
		"as if it had expired":                    {"x-last-death-reason": "expired"},
		"as if it had died first elsewhere":       {"x-first-death-queue": "elsewhere", "x-first-death-reason": "maxlen", "x-first-death-exchange": "there"},
	} {
		t.Run("a message that comes "+name+" starts in the first tier", func(t *testing.T) {
			fate := deadletter.Die(observed, target, deadletter.Publish("shop", "order.created", forged), rejected)
			if got := fate.Queues(); !slices.Equal(got, []string{l.Tiers[0].Queue}) {
				t.Fatalf("arrives in %q", got)
			}
			headers := fate.Deliveries[0].Message.Headers
			if headers["x-first-death-queue"] != target || headers["x-last-death-exchange"] != "shop" {
				t.Errorf("headers %v still hold what was forged", headers)
			}
		})
	}
}

func TestDieByArgumentsAndPolicies(t *testing.T) {
	type args = topology.Args
	policy := func(name string, priority int64, applyTo string, definition args) topology.Policy {
		return topology.Policy{Name: name, Pattern: "^w$", ApplyTo: applyTo, Priority: priority, Definition: definition}
	}
	p, r, byKey := queue("p", topology.Classic, nil), queue("r", topology.Classic, nil), queue("key", topology.Classic, nil)
	dlxP, dlxR := exchange("to-p", "fanout"), exchange("to-r", "fanout")
	for name, tc := range map[string]struct {
		queueType string
		arguments args
		policies  []topology.Policy
		want      []string
		loss      deadletter.Loss
		stalled   bool
	}{
		"without a dead-letter exchange it is dropped": {
			queueType: topology.Classic, loss: deadletter.NoDeadLetterExchange},
		"a policy sends it on": {
			queueType: topology.Classic, policies: []topology.Policy{policy("a", 0, "all", args{"dead-letter-exchange": "to-p"})}, want: []string{"p"}},
		"an argument beats a policy": {
			queueType: topology.Quorum, arguments: args{"x-dead-letter-exchange": "to-r"},
			policies: []topology.Policy{policy("a", 9, "all", args{"dead-letter-exchange": "to-p"})}, want: []string{"r"}},
		"the policy with the highest priority decides alone": {
			queueType: topology.Classic, policies: []topology.Policy{
				policy("a", 1, "all", args{"dead-letter-exchange": "to-p"}), policy("b", 2, "all", args{"max-length": int64(9)})},
			loss: deadletter.NoDeadLetterExchange},
		"a policy with a key unknown to the type is left out for the next": {
			queueType: topology.Classic, policies: []topology.Policy{
				policy("a", 1, "all", args{"dead-letter-exchange": "to-p"}), policy("b", 2, "all", args{"dead-letter-exchange": "to-r", "delivery-limit": int64(9)})},
			want: []string{"p"}},
		"a policy for quorum queues leaves a classic one alone": {
			queueType: topology.Classic, policies: []topology.Policy{policy("a", 1, "quorum_queues", args{"dead-letter-exchange": "to-p"})},
			loss: deadletter.NoDeadLetterExchange},
		"a policy for exchanges leaves a queue alone": {
			queueType: topology.Classic, policies: []topology.Policy{policy("a", 1, "exchanges", args{"dead-letter-exchange": "to-p"})},
			loss: deadletter.NoDeadLetterExchange},
		"a routing key by policy joins an exchange by argument": {
			queueType: topology.Classic, arguments: args{"x-dead-letter-exchange": ""},
			policies: []topology.Policy{policy("a", 1, "all", args{"dead-letter-routing-key": "key"})}, want: []string{"key"}},
		"a routing key alone sends nothing": {
			queueType: topology.Classic, policies: []topology.Policy{policy("a", 1, "all", args{"dead-letter-routing-key": "key"})},
			loss: deadletter.NoDeadLetterExchange},
		"an exchange that is missing loses it": {
			queueType: topology.Classic, arguments: args{"x-dead-letter-exchange": "gone"}, loss: deadletter.DeadLetterExchangeMissing},
		"at-least-once keeps it when the exchange is missing": {
			queueType: topology.Quorum, arguments: args{"x-dead-letter-exchange": "gone", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"},
			loss: deadletter.DeadLetterExchangeMissing, stalled: true},
		"at-least-once keeps it when nothing takes it": {
			queueType: topology.Quorum, arguments: args{"x-dead-letter-exchange": "", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"},
			loss: deadletter.Unroutable, stalled: true},
		"at-least-once without an exchange drops it": {
			queueType: topology.Quorum, arguments: args{"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"},
			loss: deadletter.NoDeadLetterExchange},
		"at-least-once needs overflow reject-publish": {
			queueType: topology.Quorum, arguments: args{"x-dead-letter-exchange": "gone", "x-dead-letter-strategy": "at-least-once"},
			loss: deadletter.DeadLetterExchangeMissing},
		"overflow by policy beats the argument of a quorum queue": {
			queueType: topology.Quorum, arguments: args{"x-dead-letter-exchange": "gone", "x-dead-letter-strategy": "at-least-once", "x-overflow": "drop-head"},
			policies: []topology.Policy{policy("a", 1, "all", args{"overflow": "reject-publish"})},
			loss:     deadletter.DeadLetterExchangeMissing, stalled: true},
		"at-least-once is nothing to a classic queue": {
			queueType: topology.Classic, arguments: args{"x-dead-letter-exchange": "gone", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"},
			loss: deadletter.DeadLetterExchangeMissing},
	} {
		t.Run(name, func(t *testing.T) {
			top := build(queue("w", tc.queueType, tc.arguments), p, r, byKey, dlxP, dlxR, bind("to-p", "", "p"), bind("to-r", "", "r"))
			for _, pol := range tc.policies {
				top.AddPolicy(pol)
			}
			fate := deadletter.Die(top, "w", deadletter.Publish("", "nowhere", nil), rejected)
			if !slices.Equal(fate.Queues(), tc.want) || fate.Loss != tc.loss || fate.Stalled != tc.stalled {
				t.Errorf("arrives in %q, loss %q, stalled %t; want %q, %q, %t", fate.Queues(), fate.Loss, fate.Stalled, tc.want, tc.loss, tc.stalled)
			}
		})
	}
}

func TestRoutingKeysOfDeadLetters(t *testing.T) {
	for name, tc := range map[string]struct {
		arguments topology.Args
		want      []string
	}{
		"without a dead-letter-routing-key all keys of the message count": {nil, []string{"one", "two"}},
		"a dead-letter-routing-key stands for all of them":                {topology.Args{"x-dead-letter-routing-key": "three"}, []string{"three"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := queue("w", topology.Classic, topology.Args{"x-dead-letter-exchange": "d"})
			maps.Copy(w.Arguments, tc.arguments)
			top := build(w, exchange("d", "direct"))
			for _, n := range []string{"one", "two", "three"} {
				top.AddQueue(queue(n, topology.Classic, nil))
				top.Bind(bind("d", n, n))
			}
			got := killed(top, "w", deadletter.Message{Keys: []string{"one", "two"}}, rejected)
			if !slices.Equal(got, sorted(tc.want)) {
				t.Errorf("arrives in %q, want %q", got, tc.want)
			}
		})
	}
}
