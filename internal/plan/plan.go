/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

// Package plan compares what should be on the broker with what is there, and says what
// to do about it: ordered steps, each with its reason. It is pure and decides alone;
// the broker package only carries out.
package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// Settle is how long the broker must have shown a state before the plan relies on it to
// take something down. Counts are up to 10 s old, and a queue that just got its first
// message reads as 0 for as long; a policy reaches a quorum queue within two ticks of 5 s.
const Settle = 12 * time.Second

// Action is what a step does to the broker.
type Action string

// The actions, in the order in which a plan takes them.
const (
	DeclareQueue    Action = "declare queue"
	DeclareExchange Action = "declare exchange"
	Bind            Action = "bind"
	PutPolicy       Action = "write policy"
	Unbind          Action = "unbind"
	DeletePolicy    Action = "delete policy"
	DeleteExchange  Action = "delete exchange"
	DeleteQueue     Action = "delete queue"
)

// Step is one write to the broker. The field that belongs to the action is set.
type Step struct {
	Action   Action
	Queue    topology.Queue
	Exchange topology.Exchange
	Binding  topology.Binding
	Policy   topology.Policy
	// Reason says why in the words of a user; logs, events and conditions show it.
	Reason string
}

// Object names what the step is about.
func (s Step) Object() string {
	switch s.Action {
	case DeclareQueue, DeleteQueue:
		return s.Queue.Name
	case DeclareExchange, DeleteExchange:
		return s.Exchange.Name
	case Bind, Unbind:
		return bindingText(s.Binding)
	case PutPolicy, DeletePolicy:
		return s.Policy.Name
	}
	return ""
}

// String is the step in one line, without its reason.
func (s Step) String() string { return string(s.Action) + " " + s.Object() }

func bindingText(b topology.Binding) string {
	text := b.Source + " -> " + b.Destination
	if reason := b.Arguments.String("x-last-death-reason"); reason != "" {
		text += " (" + reason
		if via := b.Arguments.String("x-last-death-exchange"); via != "" {
			text += " after " + via
		}
		text += ")"
	}
	return text
}

// ConflictKind says what kind of thing stands in the way.
type ConflictKind string

// The kinds of conflict; each is the reason of a condition.
const (
	TargetClaimed         ConflictKind = "TargetClaimed"
	NotOwned              ConflictKind = "NotOwned"
	QueueArgumentMismatch ConflictKind = "QueueArgumentMismatch"
	PolicyConflict        ConflictKind = "PolicyConflict"
	UnsupportedTargetType ConflictKind = "UnsupportedTargetType"
)

// Conflict is something on the broker that the plan must not touch and can't do without
// touching.
type Conflict struct {
	Kind    ConflictKind
	Message string
}

// Wait is something of ours that is no longer wanted and can't go yet.
type Wait struct {
	Object string
	// Reason says what it waits for.
	Reason string
	// Blocked is set when time alone does not end it.
	Blocked bool
}

// Plan is what to do. With conflicts nothing is changed; only what of a claimed ladder is
// missing may be made again.
type Plan struct {
	Steps     []Step
	Conflicts []Conflict
	Waits     []Wait
}

// Done reports whether the broker is as it should be.
func (p Plan) Done() bool { return len(p.Steps) == 0 && len(p.Conflicts) == 0 && len(p.Waits) == 0 }

// Compute plans the way from observed to the ladder. It has no side effects.
func Compute(l topology.Ladder, observed topology.Topology) Plan {
	c := computation{ladder: l, observed: observed}
	if c.findConflicts(); len(c.plan.Conflicts) > 0 {
		if !l.Request.Deleting && c.mine(observed.Exchanges[l.Park].Arguments) {
			c.repair()
		}
		return c.plan
	}
	if !l.Request.Deleting && c.claim() {
		return c.plan
	}
	c.addMissing()
	c.addPolicy()
	c.removeStrayBindings()
	c.removeLeftovers()
	return c.plan
}

// repair goes on keeping a ladder that is ours while something stands in the way. Where
// that is no more than somebody's policy, all of it: a lost tier would let messages under
// way start again at the first. Else the ways home of what waits, since the ladder that
// is wanted may be another than the one that is there.
func (c *computation) repair() {
	if c.policiesAlone() {
		c.addMissing()
		return
	}
	for _, e := range topology.Sorted(c.ladder.Wanted.Exchanges) {
		if role := e.Arguments.RoleOf(); role != topology.RoleReturn && role != topology.RolePark {
			continue
		}
		if have, ok := c.observed.Exchanges[e.Name]; !ok {
			c.declareExchange(e)
		} else if !c.mine(have.Arguments) {
			continue
		}
		c.addMissingBindings(e.Name)
	}
}

// policiesAlone reports whether the only conflicts are with policies of others.
func (c *computation) policiesAlone() bool {
	refusals := c.ladder.Refusals
	return len(c.plan.Conflicts) == len(refusals) &&
		!slices.ContainsFunc(refusals, func(r topology.Refusal) bool { return r.Kind != topology.RefusedPolicy })
}

// addMissingBindings binds an exchange to those of its queues that are there and belong to
// the ladder.
func (c *computation) addMissingBindings(exchange string) {
	for _, b := range c.ladder.Wanted.Bindings[exchange] {
		if !c.observed.Bound(b) && c.inLadder(b) {
			c.bind(b)
		}
	}
}

func (c *computation) bind(b topology.Binding) {
	c.step(Step{Action: Bind, Binding: b, Reason: fmt.Sprintf("binding %s is missing", bindingText(b))})
}

type computation struct {
	ladder   topology.Ladder
	observed topology.Topology
	plan     Plan
}

func (c *computation) step(s Step) { c.plan.Steps = append(c.plan.Steps, s) }

// wait notes what holds an object up, and reports whether something does.
func (c *computation) wait(object string, w Wait) bool {
	if w.Reason == "" {
		return false
	}
	w.Object = object
	c.plan.Waits = append(c.plan.Waits, w)
	return true
}

// waitFor is something that ends by itself, blockedBy something that does not.
func waitFor(format string, args ...any) Wait { return Wait{Reason: fmt.Sprintf(format, args...)} }

func blockedBy(format string, args ...any) Wait {
	return Wait{Reason: fmt.Sprintf(format, args...), Blocked: true}
}

// claim takes the target by the one exchange whose name does not depend on the spec, and
// goes on only when an observation shows that it is ours: a second declaration of the
// same exchange succeeds without a word and leaves the first one's owner in place.
func (c *computation) claim() bool {
	if _, ok := c.observed.Exchanges[c.ladder.Park]; ok {
		return false
	}
	c.declareExchange(c.ladder.Wanted.Exchanges[c.ladder.Park])
	return true
}

func (c *computation) declareExchange(e topology.Exchange) {
	c.step(Step{Action: DeclareExchange, Exchange: e, Reason: fmt.Sprintf("exchange %s is missing", e.Name)})
}

// addMissing declares what is not there, from the end of a message's way to its start.
func (c *computation) addMissing() {
	for _, q := range topology.Sorted(c.ladder.Wanted.Queues) {
		if _, ok := c.observed.Queues[q.Name]; !ok {
			c.step(Step{Action: DeclareQueue, Queue: q, Reason: fmt.Sprintf("queue %s is missing", q.Name)})
		}
	}
	for _, e := range topology.Sorted(c.ladder.Wanted.Exchanges) {
		if _, ok := c.observed.Exchanges[e.Name]; !ok {
			c.declareExchange(e)
		}
	}
	for _, b := range c.ladder.Wanted.SortedBindings() {
		if !c.observed.Bound(b) {
			c.bind(b)
		}
	}
}

// addPolicy writes the target's policy last, and only when it differs: each changed
// policy costs the broker queues times policies of the vhost.
func (c *computation) addPolicy() {
	for _, want := range topology.Sorted(c.ladder.Wanted.Policies) {
		have, ok := c.observed.Policies[want.Name]
		_, own := c.ladder.Request.OwnPolicy(c.observed)
		switch {
		case !ok:
			c.step(Step{Action: PutPolicy, Policy: want, Reason: fmt.Sprintf("policy %s is missing", want.Name)})
		case !own || have.Equal(want):
		case c.losesDeadLetters(have, want):
			c.wait(want.Name, waitFor("dead letters may be pending in queue %s, and the broker deletes them when the policy leaves at-least-once dead-lettering",
				c.ladder.Request.Target))
		default:
			c.step(Step{Action: PutPolicy, Policy: want, Reason: policyDifference(have, want)})
		}
	}
}

// losesDeadLetters: switching from at-least-once to at-most-once, as when a policy below
// gets a length limit, makes a quorum queue delete what it has not yet delivered.
func (c *computation) losesDeadLetters(have, want topology.Policy) bool {
	const key = topology.KeyDeadLetterStrategy
	if !have.Definition.Has(key) || want.Definition.Has(key) {
		return false
	}
	target, ok := c.observed.Queues[c.ladder.Request.Target]
	if !ok || target.Type != topology.Quorum {
		return false
	}
	s := target.State
	return s == nil || s.PendingDeadLetters == nil || *s.PendingDeadLetters > 0
}

func policyDifference(have, want topology.Policy) string {
	const dlx = topology.KeyDeadLetterExchange
	if old, next := have.Definition.String(dlx), want.Definition.String(dlx); old != next {
		return fmt.Sprintf("policy %s sends dead letters to %q instead of %q", want.Name, old, next)
	}
	switch {
	case have.Pattern != want.Pattern:
		return fmt.Sprintf("policy %s has the pattern %s instead of %s", want.Name, have.Pattern, want.Pattern)
	case have.Priority != want.Priority:
		return fmt.Sprintf("policy %s has priority %d instead of %d", want.Name, have.Priority, want.Priority)
	case have.ApplyTo != want.ApplyTo:
		return fmt.Sprintf("policy %s applies to %s instead of %s", want.Name, have.ApplyTo, want.ApplyTo)
	}
	return fmt.Sprintf("policy %s differs from what is wanted", want.Name)
}

// removeStrayBindings takes off what leads from an exchange of ours to a queue or an
// exchange of the ladder without belonging there: it would deliver a message twice.
func (c *computation) removeStrayBindings() {
	for _, e := range topology.Sorted(c.ladder.Wanted.Exchanges) {
		if !c.mine(c.observed.Exchanges[e.Name].Arguments) {
			continue
		}
		for _, b := range c.observed.Bindings[e.Name] {
			if c.inLadder(b) && !c.ladder.Wanted.Bound(b) {
				c.step(Step{Action: Unbind, Binding: b, Reason: fmt.Sprintf("binding %s does not belong to the ladder", bindingText(b))})
			}
		}
	}
}

func (c *computation) mine(args topology.Args) bool {
	return args.OwnerOf() == c.ladder.Request.Owner.String()
}

func (c *computation) inLadder(b topology.Binding) bool {
	if b.ToExchange {
		return c.mine(c.observed.Exchanges[b.Destination].Arguments)
	}
	return b.Destination == c.ladder.Request.Target || c.mine(c.observed.Queues[b.Destination].Arguments)
}
