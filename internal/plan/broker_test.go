/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/plan"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// broker is a vhost that plans are applied to: what is there, and the rules of the real
// one that a plan can break. It knows nothing of messages but their number.
type broker struct {
	topology.Topology
}

func newBroker() *broker { return &broker{topology.New()} }

// declare adds a queue as a client would, empty.
func (b *broker) declare(q topology.Queue) {
	q.State = &topology.QueueState{Messages: new(int64(0))}
	if q.Type == topology.Quorum {
		q.State.PendingDeadLetters = new(int64(0))
	}
	b.AddQueue(q)
	b.settlePolicies()
}

// target adds a queue of somebody's application.
func (b *broker) target(name, queueType string, args topology.Args) {
	all := topology.Args{"x-queue-type": queueType}
	maps.Copy(all, args)
	b.declare(topology.Queue{Name: name, Type: queueType, Durable: true, Arguments: all})
}

// userPolicy writes a policy of somebody else.
func (b *broker) userPolicy(p topology.Policy) {
	b.AddPolicy(p)
	b.settlePolicies()
}

func (b *broker) dropPolicy(name string) {
	delete(b.Policies, name)
	b.settlePolicies()
}

func (b *broker) messages(queue string, n int64) {
	b.state(queue, func(s *topology.QueueState) { s.Messages = &n })
}

func (b *broker) messagesUnknown(queue string) {
	b.state(queue, func(s *topology.QueueState) { s.Messages = nil })
}

func (b *broker) pending(queue string, n int64) {
	b.state(queue, func(s *topology.QueueState) { s.PendingDeadLetters = &n })
}

// state changes a copy, since observations share what they point to.
func (b *broker) state(queue string, change func(*topology.QueueState)) {
	q := b.Queues[queue]
	s := *q.State
	change(&s)
	if s.Messages == nil || *s.Messages > 0 {
		s.IdleFor = 0
	}
	q.State = &s
	b.AddQueue(q)
}

// settlePolicies puts into effect, as the broker does, for each queue the policy with the
// highest priority that applies to it. A queue whose policy is another one, or reads
// otherwise, starts to count anew.
func (b *broker) settlePolicies() {
	for name, q := range b.Queues {
		asked := q
		asked.State = nil
		p, _ := b.InEffect(asked)
		if q.State.Policy != p.Name {
			b.state(name, func(s *topology.QueueState) { s.Policy, s.PolicyFor = p.Name, 0 })
		}
	}
}

func (b *broker) policyChanged(name string) {
	b.settlePolicies()
	for queue, q := range b.Queues {
		if q.State.Policy == name {
			b.state(queue, func(s *topology.QueueState) { s.PolicyFor = 0 })
		}
	}
}

// advance lets time pass, as a history of observations would tell it.
func (b *broker) advance(d time.Duration) {
	for name, q := range b.Queues {
		idle := q.State.Messages != nil && *q.State.Messages == 0 && !b.boundTo(name)
		b.state(name, func(s *topology.QueueState) {
			s.PolicyFor += d
			s.IdleFor += d
			if !idle {
				s.IdleFor = 0
			}
		})
	}
}

func (b *broker) boundTo(queue string) bool {
	return slices.ContainsFunc(b.SortedBindings(), func(x topology.Binding) bool { return !x.ToExchange && x.Destination == queue })
}

// observe is a snapshot that later writes leave alone.
func (b *broker) observe() topology.Topology { return b.Clone() }

// apply takes the steps in order. The error is a step that the real broker would refuse,
// or that breaks a promise.
func (b *broker) apply(r topology.Request, steps []plan.Step) error {
	for _, s := range steps {
		if err := b.applyOne(r, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
		if s.Reason == "" {
			return fmt.Errorf("%s: no reason", s)
		}
	}
	return nil
}

func (b *broker) applyOne(r topology.Request, s plan.Step) error {
	switch s.Action {
	case plan.DeclareQueue:
		return b.declareQueue(r, s.Queue)
	case plan.DeclareExchange:
		return b.declareExchange(r, s.Exchange)
	case plan.Bind, plan.Unbind:
		return b.changeBinding(r, s)
	case plan.PutPolicy:
		return b.putPolicy(r, s.Policy)
	case plan.DeletePolicy:
		return b.deletePolicy(r, s.Policy)
	case plan.DeleteExchange:
		return b.deleteExchange(r, s.Exchange.Name)
	case plan.DeleteQueue:
		return b.deleteQueue(r, s.Queue.Name)
	}
	return fmt.Errorf("unknown action")
}

func (b *broker) declareQueue(r topology.Request, q topology.Queue) error {
	if _, ok := b.Queues[q.Name]; ok {
		return fmt.Errorf("the queue exists")
	}
	if q.Arguments.OwnerOf() != r.Owner.String() || len(q.Name) > 255 || q.Name == "" {
		return fmt.Errorf("bad owner or name")
	}
	b.declare(q)
	return nil
}

func (b *broker) declareExchange(r topology.Request, e topology.Exchange) error {
	if _, ok := b.Exchanges[e.Name]; ok {
		return fmt.Errorf("the exchange exists")
	}
	if e.Arguments.OwnerOf() != r.Owner.String() || len(e.Name) > 255 || e.Name == "" || !e.Internal {
		return fmt.Errorf("bad owner or name, or open to publishers")
	}
	b.AddExchange(e)
	return nil
}

func (b *broker) changeBinding(r topology.Request, s plan.Step) error {
	x := s.Binding
	if b.Exchanges[x.Source].Arguments.OwnerOf() != r.Owner.String() {
		return fmt.Errorf("the source is missing or not ours")
	}
	if _, ok := b.Queues[x.Destination]; !x.ToExchange && !ok {
		return fmt.Errorf("the queue is missing")
	}
	if !x.ToExchange && x.Destination != r.Target && b.Queues[x.Destination].Arguments.OwnerOf() != r.Owner.String() {
		return fmt.Errorf("the queue is not ours")
	}
	if b.Bound(x) == (s.Action == plan.Bind) {
		return fmt.Errorf("nothing to do")
	}
	if s.Action == plan.Bind {
		b.Bind(x)
	} else {
		b.Unbind(x)
	}
	return nil
}

func (b *broker) putPolicy(r topology.Request, p topology.Policy) error {
	have, exists := b.Policies[p.Name]
	if _, own := r.OwnPolicy(b.Topology); exists && !own {
		return fmt.Errorf("the policy is not ours")
	}
	if have.Equal(p) {
		return fmt.Errorf("the policy is written unchanged")
	}
	if err := b.wayFrom(r, p.Definition.String(topology.KeyDeadLetterExchange)); err != nil {
		return err
	}
	if target, ok := b.Queues[r.Target]; ok && target.Type == topology.Quorum && exists &&
		have.Definition.Has(topology.KeyDeadLetterStrategy) && !p.Definition.Has(topology.KeyDeadLetterStrategy) && !nonePending(target) {
		return fmt.Errorf("pending dead letters are deleted")
	}
	b.AddPolicy(p)
	b.policyChanged(p.Name)
	return nil
}

// wayFrom checks that nothing that the exchange can be asked to route is dropped.
func (b *broker) wayFrom(r topology.Request, name string) error {
	e, ok := b.Exchanges[name]
	if !ok || e.Arguments.OwnerOf() != r.Owner.String() {
		return fmt.Errorf("dead letters would go to %q, which is missing or not ours", name)
	}
	if e.Type == topology.Headers {
		return b.wayFrom(r, e.Arguments.String(topology.KeyAlternateExchange))
	}
	for _, x := range b.Bindings[name] {
		q, ok := b.Queues[x.Destination]
		if !ok {
			continue
		}
		if back := q.Arguments.String("x-" + topology.KeyDeadLetterExchange); back != "" {
			if _, ok := b.Exchanges[back]; !ok {
				return fmt.Errorf("queue %q returns to exchange %q, which is missing", q.Name, back)
			}
		}
		return nil
	}
	return fmt.Errorf("exchange %q leads nowhere", name)
}

func nonePending(q topology.Queue) bool {
	return q.State.PendingDeadLetters != nil && *q.State.PendingDeadLetters == 0
}

func (b *broker) deletePolicy(r topology.Request, p topology.Policy) error {
	if _, own := r.OwnPolicy(b.Topology); p.Name != r.PolicyName() || !own {
		return fmt.Errorf("the policy is not ours")
	}
	if !r.Deleting {
		return fmt.Errorf("the target is let go although nobody asked for it")
	}
	if target, ok := b.Queues[r.Target]; ok {
		if target.State.PolicyFor < plan.Settle {
			return fmt.Errorf("the policy changed %s ago", target.State.PolicyFor)
		}
		if target.Type == topology.Quorum && !nonePending(target) {
			return fmt.Errorf("pending dead letters are deleted")
		}
	}
	b.dropPolicy(p.Name)
	return nil
}

func (b *broker) deleteExchange(r topology.Request, name string) error {
	if b.Exchanges[name].Arguments.OwnerOf() != r.Owner.String() {
		return fmt.Errorf("the exchange is missing or not ours")
	}
	for _, p := range b.Policies {
		if p.Definition.String(topology.KeyDeadLetterExchange) == name {
			return fmt.Errorf("policy %q sends dead letters to it", p.Name)
		}
	}
	for _, q := range b.Queues {
		if q.Arguments.String("x-"+topology.KeyDeadLetterExchange) == name {
			return fmt.Errorf("queue %q sends dead letters to it", q.Name)
		}
	}
	for _, e := range b.Exchanges {
		if e.Arguments.String(topology.KeyAlternateExchange) == name {
			return fmt.Errorf("exchange %q falls back on it", e.Name)
		}
	}
	b.RemoveExchange(name)
	return nil
}

func (b *broker) deleteQueue(r topology.Request, name string) error {
	q := b.Queues[name]
	switch {
	case q.Arguments.OwnerOf() != r.Owner.String() || name == r.Target:
		return fmt.Errorf("the queue is missing or not ours")
	case q.State.Messages == nil || *q.State.Messages != 0:
		return fmt.Errorf("the queue is not known to be empty")
	case q.State.IdleFor < plan.Settle:
		return fmt.Errorf("the queue was idle for %s only", q.State.IdleFor)
	case q.Arguments.RoleOf() == topology.RoleParkingLot && r.Retain:
		return fmt.Errorf("the parking lot is retained")
	}
	b.RemoveQueue(name)
	return nil
}

// render writes a topology down, without the state of its queues.
func render(t topology.Topology, keep func(owner string) bool) string {
	var sb strings.Builder
	for _, q := range topology.Sorted(t.Queues) {
		if q.State = nil; keep(q.Arguments.OwnerOf()) {
			fmt.Fprintf(&sb, "queue %+v\n", q)
		}
	}
	for _, e := range topology.Sorted(t.Exchanges) {
		if keep(e.Arguments.OwnerOf()) {
			fmt.Fprintf(&sb, "exchange %+v\n", e)
		}
	}
	for _, x := range t.SortedBindings() {
		if keep(t.Exchanges[x.Source].Arguments.OwnerOf()) {
			fmt.Fprintf(&sb, "binding %+v\n", x)
		}
	}
	for _, p := range topology.Sorted(t.Policies) {
		if keep("policy " + p.Name) {
			fmt.Fprintf(&sb, "policy %+v\n", p)
		}
	}
	return sb.String()
}

func everything(string) bool { return true }

// foreignTo keeps what the owner of the request has no business with.
func foreignTo(r topology.Request) func(string) bool {
	return func(owner string) bool { return owner != r.Owner.String() && owner != "policy "+r.PolicyName() }
}
