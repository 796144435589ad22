/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/plan"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// anyRequest draws a spec that validation accepts.
func anyRequest() *rapid.Generator[topology.Request] {
	return rapid.Custom(func(t *rapid.T) topology.Request {
		r := orders()
		edit(t, &r)
		return r
	})
}

// edit changes what can be changed about a spec.
func edit(t *rapid.T, r *topology.Request) {
	r.MaxAttempts = rapid.IntRange(1, 6).Draw(t, "maxAttempts")
	seconds := rapid.SliceOfN(rapid.IntRange(1, 4), min(1, r.MaxAttempts-1), r.MaxAttempts-1).Draw(t, "delays")
	r.Delays = nil
	for _, s := range seconds {
		r.Delays = append(r.Delays, time.Duration(s)*time.Second)
	}
	r.ParkingLot = rapid.SampledFrom([]string{"orders.parked", "orders.parked", "orders.failed", "orders.retry.1.1s"}).Draw(t, "parkingLot")
	r.QueueType = rapid.SampledFrom([]string{topology.Quorum, topology.Quorum, topology.Classic}).Draw(t, "queueType")
	r.Retain = rapid.Bool().Draw(t, "retain")
}

var somebodysDefinitions = []topology.Args{
	{"max-length": int64(10)},
	{"max-length": int64(10), "overflow": "reject-publish"},
	{"message-ttl": int64(1000), "queue-version": int64(2)},
	{"delivery-limit": int64(3)},
	{"queue-mode": "lazy", "expires": int64(5000)},
	{"dead-letter-exchange": "theirs"},
	{"dead-letter-strategy": "at-least-once", "overflow": "reject-publish"},
}

// life is one vhost and one policy to which anything may happen.
type life struct {
	broker  *broker
	request topology.Request
}

func (l *life) ours() []string {
	var names []string
	for _, q := range l.broker.OwnedQueues(l.request.Owner) {
		names = append(names, q.Name)
	}
	return names
}

// pass plans and applies, and checks what must hold for each plan.
func (l *life) pass(t *rapid.T) plan.Plan {
	observed := l.broker.observe()
	before := render(l.broker.Topology, foreignTo(l.request))
	ladder := topology.Desired(l.request, observed)
	p := plan.Compute(ladder, observed)
	if again := plan.Compute(topology.Desired(l.request, observed), observed); fmt.Sprintf("%+v", p) != fmt.Sprintf("%+v", again) {
		t.Fatalf("the same observation gave two plans:\n%s\n%s", tell(p), tell(again))
	}
	if got := render(l.broker.Topology, foreignTo(l.request)); got != before {
		t.Fatalf("planning changed the observation")
	}
	for _, s := range p.Steps {
		if len(p.Conflicts) > 0 && !slices.Contains([]plan.Action{plan.DeclareQueue, plan.DeclareExchange, plan.Bind}, s.Action) {
			t.Fatalf("a plan with conflicts does more than repair:\n%s", tell(p))
		}
	}
	if err := l.broker.apply(l.request, p.Steps); err != nil {
		t.Fatalf("%v, in the plan\n%s", err, tell(p))
	}
	if after := render(l.broker.Topology, foreignTo(l.request)); after != before {
		t.Fatalf("the plan\n%schanged what is not ours:\n%s\nbecame\n%s", tell(p), before, after)
	}
	return p
}

func (l *life) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"pass":           func(t *rapid.T) { l.pass(t) },
		"several passes": func(t *rapid.T) { l.passes(t, rapid.IntRange(2, 8).Draw(t, "passes")) },
		"time passes": func(t *rapid.T) {
			l.broker.advance(time.Duration(rapid.IntRange(1, 20).Draw(t, "seconds")) * time.Second)
		},
		"edit": func(t *rapid.T) { edit(t, &l.request) },
		"delete": func(t *rapid.T) {
			l.request.Deleting = rapid.IntRange(0, 3).Draw(t, "delete") == 0 || l.request.Deleting
		},
		"target comes or goes": l.targetChanges,
		"messages":             l.messagesChange,
		"lying history":        l.historyLies,
		"pending dead letters": l.pendingChanges,
		"drift":                l.drift,
		"foreign objects":      l.foreignObject,
		"policies":             l.policyChanges,
		"":                     func(*rapid.T) {},
	}
}

func (l *life) passes(t *rapid.T, n int) plan.Plan {
	var p plan.Plan
	for range n {
		p = l.pass(t)
		l.broker.advance(15 * time.Second)
	}
	return p
}

func (l *life) targetChanges(t *rapid.T) {
	l.broker.RemoveQueue("orders")
	switch kind := rapid.SampledFrom([]string{"", topology.Classic, topology.Quorum, topology.Stream, "dlx", "bounded"}).Draw(t, "target"); kind {
	case "":
	case "dlx":
		l.broker.target("orders", topology.Quorum, topology.Args{"x-dead-letter-exchange": "theirs"})
	case "bounded":
		l.broker.target("orders", topology.Quorum, topology.Args{"x-max-length": int64(3)})
	default:
		l.broker.target("orders", kind, nil)
	}
}

func (l *life) anyQueue(t *rapid.T) (string, bool) {
	names := slices.Sorted(maps.Keys(l.broker.Queues))
	if len(names) == 0 {
		return "", false
	}
	return rapid.SampledFrom(names).Draw(t, "queue"), true
}

func (l *life) messagesChange(t *rapid.T) {
	if q, ok := l.anyQueue(t); ok {
		if n := rapid.Int64Range(-1, 2).Draw(t, "messages"); n < 0 {
			l.broker.messagesUnknown(q)
		} else {
			l.broker.messages(q, n)
		}
	}
}

// historyLies: even when an observation contradicts itself, no queue goes that may hold
// messages.
func (l *life) historyLies(t *rapid.T) {
	if name, ok := l.anyQueue(t); ok {
		q := l.broker.Queues[name]
		s := *q.State
		s.IdleFor = time.Duration(rapid.IntRange(0, 30).Draw(t, "idle")) * time.Second
		s.Messages = rapid.Ptr(rapid.Int64Range(0, 2), true).Draw(t, "messages")
		q.State = &s
		l.broker.AddQueue(q)
	}
}

func (l *life) pendingChanges(t *rapid.T) {
	if _, ok := l.broker.Queues["orders"]; ok {
		l.broker.state("orders", func(s *topology.QueueState) {
			s.PendingDeadLetters = rapid.Ptr(rapid.Int64Range(0, 2), true).Draw(t, "pending")
		})
	}
}

func (l *life) drift(t *rapid.T) {
	var remove []func()
	for _, q := range l.ours() {
		remove = append(remove, func() { l.broker.RemoveQueue(q) })
	}
	for _, e := range l.broker.OwnedExchanges(l.request.Owner) {
		remove = append(remove, func() { l.broker.RemoveExchange(e.Name) })
	}
	for _, x := range l.broker.SortedBindings() {
		remove = append(remove, func() { l.broker.Unbind(x) })
	}
	for _, p := range topology.Sorted(l.broker.Policies) {
		remove = append(remove, func() { l.broker.dropPolicy(p.Name) })
	}
	if len(remove) > 0 {
		remove[rapid.IntRange(0, len(remove)-1).Draw(t, "object")]()
	}
}

// foreignObject puts somebody else's object where one of ours should be or is.
func (l *life) foreignObject(t *rapid.T) {
	owner := rapid.SampledFrom([]topology.Args{
		nil, {topology.ArgOwner: "cluster-2/shop/orders"}, {topology.ArgOwner: "cluster-1/shop/other"}, {topology.ArgOwner: "nonsense"},
	}).Draw(t, "owner")
	if rapid.Bool().Draw(t, "an exchange") {
		names := []string{"orders.retry.park", "orders.retry.1.return", "orders.retry.3.return"}
		for _, e := range l.broker.OwnedExchanges(l.request.Owner) {
			names = append(names, e.Name)
		}
		name := rapid.SampledFrom(names).Draw(t, "name")
		l.broker.RemoveExchange(name)
		l.broker.AddExchange(topology.Exchange{Name: name, Type: topology.Fanout, Durable: true, Arguments: owner})
		return
	}
	name := rapid.SampledFrom(append([]string{"orders.parked", "orders.failed", "orders.retry.1.1s"}, l.ours()...)).Draw(t, "name")
	l.broker.RemoveQueue(name)
	l.broker.target(name, topology.Classic, owner)
}

func (l *life) policyChanges(t *rapid.T) {
	p := topology.Policy{
		Name:       rapid.SampledFrom([]string{"a", "b", "retry-operator.shop.orders"}).Draw(t, "name"),
		Pattern:    rapid.SampledFrom([]string{".*", "^orders$", `^\Qorders\E$`, "^o++rders", "other"}).Draw(t, "pattern"),
		ApplyTo:    rapid.SampledFrom([]string{"all", "queues", "classic_queues", "quorum_queues", "exchanges"}).Draw(t, "applyTo"),
		Priority:   rapid.Int64Range(-1, 300).Draw(t, "priority"),
		Definition: rapid.SampledFrom(somebodysDefinitions).Draw(t, "definition"),
	}
	l.broker.userPolicy(p)
}

// calm takes away what a person would have to: foreign objects, policies, a target that
// can't be served, messages under way.
func (l *life) calm() {
	for name, q := range l.broker.Queues {
		if q.Arguments.OwnerOf() != l.request.Owner.String() {
			l.broker.RemoveQueue(name)
		}
	}
	for name, e := range l.broker.Exchanges {
		if e.Arguments.OwnerOf() != l.request.Owner.String() {
			l.broker.RemoveExchange(name)
		}
	}
	for name := range l.broker.Policies {
		if _, own := l.request.OwnPolicy(l.broker.Topology); name != l.request.PolicyName() || !own {
			l.broker.dropPolicy(name)
		}
	}
	l.broker.target("orders", topology.Quorum, nil)
	for name := range l.broker.Queues {
		l.broker.messages(name, 0)
		l.broker.pending(name, 0)
	}
}

func TestWhateverHappensNothingIsHarmedAndInTheEndAllIsAsWanted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &life{broker: newBroker(), request: anyRequest().Draw(t, "request")}
		l.broker.target("orders", rapid.SampledFrom([]string{topology.Classic, topology.Quorum}).Draw(t, "target"), nil)
		l.passes(t, 3)
		t.Repeat(l.actions())

		l.calm()
		p := l.passes(t, 12)
		if slices.ContainsFunc(p.Conflicts, func(c plan.Conflict) bool { return c.Kind == plan.QueueArgumentMismatch }) {
			return // A queue type or a name that was changed can't be undone by the operator.
		}
		if !p.Done() {
			t.Fatalf("does not come to rest:\n%s", tell(p))
		}
		if l.request.Deleting {
			l.wantGone(t)
			return
		}
		wanted := topology.Desired(l.request, l.broker.observe()).Wanted
		if got, want := render(l.withoutOthers(), everything), render(wanted, everything); got != want {
			t.Fatalf("at rest there is\n%s\nwant\n%s", got, want)
		}
	})
}

// withoutOthers is what is ours on the broker, without retained earlier parking lots.
func (l *life) withoutOthers() topology.Topology {
	c := l.broker.Clone()
	for name, q := range c.Queues {
		if q.Arguments.OwnerOf() != l.request.Owner.String() || (q.Arguments.RoleOf() == topology.RoleParkingLot && name != l.request.ParkingLot) {
			delete(c.Queues, name)
		}
	}
	return c
}

func (l *life) wantGone(t *rapid.T) {
	if len(l.broker.Exchanges) > 0 || len(l.broker.Policies) > 0 {
		t.Fatalf("exchanges or policies are left:\n%s", render(l.broker.Topology, everything))
	}
	for name, q := range l.broker.Queues {
		if kept := name == "orders" || (l.request.Retain && q.Arguments.RoleOf() == topology.RoleParkingLot); !kept {
			t.Fatalf("queue %q is left", name)
		}
	}
}

func TestAPlanThatIsAppliedLeavesNothingToDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &life{broker: newBroker(), request: anyRequest().Draw(t, "request")}
		if kind := rapid.SampledFrom([]string{"", topology.Classic, topology.Quorum}).Draw(t, "target"); kind != "" {
			l.broker.target("orders", kind, nil)
		}
		if rapid.Bool().Draw(t, "somebody's policy") {
			l.policyChanges(t)
		}
		first := l.pass(t)
		second := l.pass(t)
		third := l.pass(t)
		if len(first.Conflicts) > 0 {
			return
		}
		if len(first.Steps) != 1 || first.Steps[0].Exchange.Name != "orders.retry.park" {
			t.Fatalf("the claim does not come alone and first:\n%s", tell(first))
		}
		if len(second.Steps) == 0 || !third.Done() {
			t.Fatalf("two passes are not enough:\n%s", tell(third))
		}
		if last := second.Steps[len(second.Steps)-1]; slices.ContainsFunc(second.Steps[:len(second.Steps)-1], isPut) || (last.Action != plan.PutPolicy && last.Action != plan.Bind) {
			t.Fatalf("the target's policy is not the last step:\n%s", tell(second))
		}
	})
}

func isPut(s plan.Step) bool { return s.Action == plan.PutPolicy }

func TestStrayBindings(t *testing.T) {
	for name, tc := range map[string]struct {
		binding topology.Binding
		goes    bool
	}{
		"a second way into the target would deliver twice": {topology.Binding{Source: "orders.retry.park", Destination: "orders"}, true},
		"a second way into a tier would keep two copies":   {topology.Binding{Source: "orders.retry.park", Destination: "orders.retry.1.10s"}, true},
		"a way to another exchange of ours":                {topology.Binding{Source: "orders.retry.park", Destination: "orders.retry.1.return", ToExchange: true}, true},
		"somebody listens in with a queue of theirs":       {topology.Binding{Source: "orders.retry.park", Destination: "audit"}, false},
		"somebody sends to the parking lot themselves":     {topology.Binding{Source: "theirs", Destination: "orders.parked"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := settled(t, topology.Quorum)
			n.broker.target("audit", topology.Classic, nil)
			n.broker.AddExchange(topology.Exchange{Name: "theirs", Type: topology.Fanout, Durable: true})
			n.broker.Bind(tc.binding)
			n.pass()
			if n.broker.Bound(tc.binding) == tc.goes {
				t.Errorf("the binding is there: %v", !tc.goes)
			}
		})
	}
}
