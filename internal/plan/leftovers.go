/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package plan

import (
	"fmt"
	"slices"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// removeLeftovers takes down what is ours and no longer wanted, each object at the moment
// when nothing can lead to it and it holds nothing. What is not known counts as held.
func (c *computation) removeLeftovers() {
	c.removePolicy()
	for _, e := range c.observed.OwnedExchanges(c.ladder.Request.Owner) {
		if _, wanted := c.ladder.Wanted.Exchanges[e.Name]; !wanted {
			c.removeExchange(e)
		}
	}
	for _, q := range c.observed.OwnedQueues(c.ladder.Request.Owner) {
		if _, wanted := c.ladder.Wanted.Queues[q.Name]; !wanted {
			c.removeQueue(q)
		}
	}
}

// removePolicy lets go of the target, once nothing that it sent off is still under way:
// taking the dead-letter exchange away deletes pending dead letters.
func (c *computation) removePolicy() {
	r := c.ladder.Request
	p, ok := r.OwnPolicy(c.observed)
	if _, wanted := c.ladder.Wanted.Policies[p.Name]; !ok || wanted {
		return
	}
	if c.wait(p.Name, c.targetUnsettled()) {
		return
	}
	c.step(Step{Action: DeletePolicy, Policy: p, Reason: fmt.Sprintf("the policy is being deleted and queue %s has no pending dead letters", r.Target)})
}

// targetUnsettled says why the target's present policy can't be relied on or taken off
// yet, or nothing.
func (c *computation) targetUnsettled() Wait {
	target, ok := c.observed.Queues[c.ladder.Request.Target]
	if !ok {
		return Wait{}
	}
	s := target.State
	if s == nil || s.PolicyFor < Settle {
		return waitFor("the policy of queue %s changed less than %s ago", target.Name, Settle)
	}
	if target.Type != topology.Quorum {
		return Wait{}
	}
	switch {
	case s.PendingDeadLetters == nil:
		return blockedBy("the broker does not say how many dead letters are pending in queue %s", target.Name)
	case *s.PendingDeadLetters > 0:
		return waitFor("%d dead letters are pending in queue %s", *s.PendingDeadLetters, target.Name)
	}
	return Wait{}
}

func (c *computation) removeExchange(e topology.Exchange) {
	if c.wait(e.Name, c.exchangeInUse(e)) {
		return
	}
	c.step(Step{Action: DeleteExchange, Exchange: e, Reason: fmt.Sprintf("exchange %s is no longer wanted and nothing leads to it", e.Name)})
}

func (c *computation) exchangeInUse(e topology.Exchange) Wait {
	role := e.Arguments.RoleOf()
	if role == topology.RoleReturn {
		return c.returnInUse(e)
	}
	if role == topology.RoleFirstFailure {
		return c.alternateInUse(e)
	}
	return c.deadLettersArrive(e)
}

// returnInUse: tiers of the attempt return through it as long as they are there.
func (c *computation) returnInUse(e topology.Exchange) Wait {
	for _, q := range c.observed.OwnedQueues(c.ladder.Request.Owner) {
		if q.Arguments.String("x-"+topology.KeyDeadLetterExchange) == e.Name {
			return waitFor("queue %s returns through it", q.Name)
		}
	}
	return Wait{}
}

func (c *computation) alternateInUse(e topology.Exchange) Wait {
	for _, other := range c.observed.OwnedExchanges(c.ladder.Request.Owner) {
		if other.Arguments.String(topology.KeyAlternateExchange) == e.Name {
			return waitFor("exchange %s falls back on it", other.Name)
		}
	}
	return Wait{}
}

// deadLettersArrive: the target's dead letters go to it, or did until a moment ago.
func (c *computation) deadLettersArrive(e topology.Exchange) Wait {
	if w := c.alternateInUse(e); w.Reason != "" {
		return w
	}
	for _, p := range topology.Sorted(c.observed.Policies) {
		if p.Definition.String(topology.KeyDeadLetterExchange) == e.Name {
			return c.policyLeadsHere(p)
		}
	}
	target, ok := c.observed.Queues[c.ladder.Request.Target]
	if ok && (target.State == nil || target.State.PolicyFor < Settle) {
		return waitFor("the policy of queue %s changed less than %s ago", target.Name, Settle)
	}
	return Wait{}
}

// removeQueue never goes by one look: quorum queues know no delete-if-empty.
func (c *computation) removeQueue(q topology.Queue) {
	empty := q.State != nil && q.State.Messages != nil && *q.State.Messages == 0
	foreign := c.boundBySomebody(q)
	if q.Arguments.RoleOf() == topology.RoleParkingLot && (c.ladder.Request.Retain || !empty || foreign != "") {
		return // An earlier parking lot stays for whoever looks after its messages, and holds nothing up.
	}
	if empty && foreign != "" {
		c.wait(q.Name, blockedBy("exchange %s, which is not this policy's, is bound to it", foreign))
		return
	}
	if !empty || q.State.IdleFor < Settle {
		c.wait(q.Name, held(q))
		return
	}
	c.step(Step{Action: DeleteQueue, Queue: q, Reason: fmt.Sprintf("queue %s is no longer wanted and has been empty for %s", q.Name, Settle)})
}

func held(q topology.Queue) Wait {
	switch {
	case q.State == nil || q.State.Messages == nil:
		return blockedBy("the broker does not say how many messages queue %s holds", q.Name)
	case *q.State.Messages > 0:
		return waitFor("queue %s holds %d messages", q.Name, *q.State.Messages)
	}
	return waitFor("queue %s must stay empty and unbound for %s before it is deleted", q.Name, Settle)
}

func (c *computation) policyLeadsHere(p topology.Policy) Wait {
	if p.Name == c.ladder.Request.PolicyName() {
		return waitFor("policy %s sends dead letters to it", p.Name)
	}
	return blockedBy("policy %s, which is not this operator's, sends dead letters to it", p.Name)
}

// boundBySomebody names an exchange of others that leads to the queue, or nothing.
func (c *computation) boundBySomebody(q topology.Queue) string {
	for source, bindings := range c.observed.Bindings {
		if c.mine(c.observed.Exchanges[source].Arguments) {
			continue
		}
		if slices.ContainsFunc(bindings, func(b topology.Binding) bool { return !b.ToExchange && b.Destination == q.Name }) {
			return source
		}
	}
	return ""
}
