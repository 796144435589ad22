/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package plan

import (
	"fmt"
	"reflect"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// findConflicts compares what is on the broker under our names with what should be there.
// A policy that is being deleted is stopped only by what is not ours under a name that it
// still needs: its own objects go whatever their arguments, and the loser of a target has
// nothing there to need.
func (c *computation) findConflicts() {
	if c.ladder.Request.Deleting {
		c.findForeign()
		return
	}
	if park, ok := c.observed.Exchanges[c.ladder.Park]; ok && c.claimedByAnother(park) {
		return
	}
	for _, r := range c.ladder.Refusals {
		c.conflict(ConflictKind(r.Kind), "%s", r.Message)
	}
	for _, want := range topology.Sorted(c.ladder.Wanted.Queues) {
		if have, ok := c.observed.Queues[want.Name]; ok {
			c.compare("queue", want.Name, describeQueue(want), describeQueue(have))
		}
	}
	for _, want := range topology.Sorted(c.ladder.Wanted.Exchanges) {
		if have, ok := c.observed.Exchanges[want.Name]; ok {
			c.compare("exchange", want.Name, describeExchange(want), describeExchange(have))
		}
	}
	c.comparePolicy()
}

func (c *computation) findForeign() {
	for _, want := range topology.Sorted(c.ladder.Wanted.Queues) {
		have, ok := c.observed.Queues[want.Name]
		if !ok || !c.requireOwned("queue", want.Name, have.Arguments) {
			continue
		}
		if is, should := have.Arguments.RoleOf(), want.Arguments.RoleOf(); is != should {
			c.conflict(QueueArgumentMismatch, "queue %q is a %s of this policy and can't be its %s; choose another name", want.Name, is, should)
		}
	}
	for _, want := range topology.Sorted(c.ladder.Wanted.Exchanges) {
		if have, ok := c.observed.Exchanges[want.Name]; ok {
			c.requireOwned("exchange", want.Name, have.Arguments)
		}
	}
}

func (c *computation) conflict(kind ConflictKind, format string, args ...any) {
	c.plan.Conflicts = append(c.plan.Conflicts, Conflict{Kind: kind, Message: fmt.Sprintf(format, args...)})
}

func (c *computation) claimedByAnother(park topology.Exchange) bool {
	owner, err := topology.ParseOwner(park.Arguments.OwnerOf())
	if err != nil || owner == c.ladder.Request.Owner {
		return false
	}
	c.conflict(TargetClaimed, "queue %q already has RetryPolicy %s/%s of installation %s; one policy can drive a queue, so delete one of the two",
		c.ladder.Request.Target, owner.Namespace, owner.Name, owner.Installation)
	return true
}

// compare reports an object that is not ours, or that is ours with other arguments.
func (c *computation) compare(kind, name string, want, have topology.Args) {
	if !c.requireOwned(kind, name, have) {
		return
	}
	for _, key := range sortedKeys(want, have) {
		if !reflect.DeepEqual(want[key], have[key]) {
			c.conflict(QueueArgumentMismatch, "%s %q has %s %s where the policy wants %s; an argument can't be changed on the broker: move its messages away and delete it, or choose another name",
				kind, name, key, valueText(have, key), valueText(want, key))
		}
	}
}

func (c *computation) requireOwned(kind, name string, have topology.Args) bool {
	if !c.mine(have) {
		c.conflict(NotOwned, "%s %q exists and %s; delete or rename it, or give the policy other names", kind, name, ownerText(have))
		return false
	}
	return true
}

func ownerText(args topology.Args) string {
	if owner, err := topology.ParseOwner(args.OwnerOf()); err == nil {
		return fmt.Sprintf("belongs to RetryPolicy %s/%s of installation %s", owner.Namespace, owner.Name, owner.Installation)
	}
	return "was not made by this operator"
}

func (c *computation) comparePolicy() {
	name := c.ladder.Request.PolicyName()
	have, exists := c.observed.Policies[name]
	if _, own := c.ladder.Request.OwnPolicy(c.observed); exists && !own {
		c.conflict(PolicyConflict, "policy %q exists with the pattern %q, which is not this policy's; delete it, or rename the RetryPolicy", name, have.Pattern)
	}
}
