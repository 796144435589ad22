/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// crashBudget is how many crashes of its consumer a message survives beside its attempts:
// RabbitMQ's own default limit. On 4.3 each reject counts towards the limit too.
const crashBudget = 20

// minPriority is above what people and hosting services use: a policy that appears above
// ours takes the target away until the next look.
const minPriority = 1_000_000

// RefusalKind says what about the target stands in the way.
type RefusalKind string

// The kinds of refusal.
const (
	// RefusedType is a target that cannot dead-letter.
	RefusedType RefusalKind = "UnsupportedTargetType"
	// RefusedArgument is an argument of the target that beats every policy.
	RefusedArgument RefusalKind = "QueueArgumentMismatch"
	// RefusedPolicy is a policy of somebody else whose keys clash with ours.
	RefusedPolicy RefusalKind = "PolicyConflict"
)

// Refusal is a reason why the target's policy can't be written.
type Refusal struct {
	Kind    RefusalKind
	Message string
}

// addPolicy adds the policy on the target that sends its dead letters to the exchange.
func (l *Ladder) addPolicy(observed Topology, exchange string) {
	r := l.Request
	p := Policy{
		Name:       r.PolicyName(),
		Pattern:    ExactPattern(r.Target),
		ApplyTo:    "queues",
		Priority:   minPriority,
		Definition: Args{KeyDeadLetterExchange: exchange},
	}
	target, found := observed.Queues[r.Target]
	if !found {
		if p, ok := beforeTarget(r, observed, p); ok {
			l.Wanted.AddPolicy(p)
		}
		return
	}
	below, _ := observed.Outranked(target, p.Name)
	l.Refusals = append(l.Refusals, refuseTarget(target)...)
	l.Refusals = append(l.Refusals, refusePolicy(below)...)
	l.Refusals = append(l.Refusals, refusePattern(observed, target, p.Name)...)
	if len(l.Refusals) > 0 {
		// What has come up since keeps nobody from parking what still dies: the policy that is
		// there goes on with what it has merged.
		if own, ok := r.OwnPolicy(observed); ok && r.Deleting {
			l.Wanted.AddPolicy(own.leadingTo(exchange))
		}
		return
	}
	if target.Type == Quorum {
		p.ApplyTo = "quorum_queues" // its keys would disable it for any other type
	}
	p.Priority = max(minPriority, highestOther(observed, r.Target, p.Name)+1)
	maps.Copy(p.Definition, mergedKeys(below))
	if target.Type == Quorum {
		maps.Copy(p.Definition, quorumKeys(r, observed, target, below))
	}
	l.Wanted.AddPolicy(p)
}

// beforeTarget is the policy while the target is not there, so that a message rejected in
// the first second of its life is kept. Its keys are good for both types. It repeats the
// policy that it would outrank where that is the same one for both; where it is not, or
// clashes, an earlier apply's policy stays with what it has merged, and none is begun.
func beforeTarget(r Request, observed Topology, p Policy) (Policy, bool) {
	below, _ := observed.Outranked(Queue{Name: r.Target, Type: Classic}, p.Name)
	quorum, _ := observed.Outranked(Queue{Name: r.Target, Type: Quorum}, p.Name)
	if below.Equal(quorum) && len(refusePolicy(below)) == 0 {
		p.Priority = max(minPriority, highestOther(observed, r.Target, p.Name)+1)
		maps.Copy(p.Definition, mergedKeys(below))
		return p, true
	}
	own, ok := r.OwnPolicy(observed)
	if !ok {
		return Policy{}, false
	}
	return own.leadingTo(p.Definition.String(KeyDeadLetterExchange)), true
}

// leadingTo returns the policy with another dead-letter exchange and nothing else changed.
func (p Policy) leadingTo(exchange string) Policy {
	p.Definition = maps.Clone(p.Definition)
	p.Definition[KeyDeadLetterExchange] = exchange
	return p
}

func highestOther(observed Topology, target, own string) int64 {
	var highest int64
	for _, p := range observed.Policies {
		if p.Name != own && p.MatchesName(target) {
			highest = max(highest, p.Priority)
		}
	}
	return highest
}

// mergedKeys are the keys of the policy that ours outranks: one user policy applies to a
// queue, so what ours does not repeat is gone.
func mergedKeys(below Policy) Args {
	out := maps.Clone(below.Definition)
	maps.DeleteFunc(out, func(k string, _ any) bool { return k == KeyDeadLetterStrategy })
	return out
}

// quorumKeys make the hop off a quorum target at-least-once and keep rejections from
// using up the delivery limit.
func quorumKeys(r Request, observed Topology, target Queue, below Policy) Args {
	out := Args{}
	if limit, ok := deliveryLimit(r, target, below); ok {
		out[KeyDeliveryLimit] = limit
	}
	if !keepsOverflow(observed, target, below) {
		out[KeyDeadLetterStrategy] = AtLeastOnce
		out[KeyOverflow] = RejectPublish
	}
	return out
}

// deliveryLimit is what ours sets: enough for all attempts and a crash budget. A limit
// that the target's owner chose stands, by policy as by argument.
func deliveryLimit(r Request, target Queue, below Policy) (int64, bool) {
	if below.Definition.Has(KeyDeliveryLimit) || target.Arguments.Has("x-"+KeyDeliveryLimit) {
		return 0, false
	}
	return int64(r.MaxAttempts) + crashBudget, true
}

// keepsOverflow reports whether publishers rely on a length limit that drops the oldest:
// one of the target's arguments, of the policy below or of an operator policy.
func keepsOverflow(observed Topology, target Queue, below Policy) bool {
	operator, _ := observed.operatorPolicy(target)
	c := combined{arguments: target.Arguments, user: below.Definition, operator: operator.Definition}
	bounded := c.smallest(KeyMaxLength) != nil || c.smallest(KeyMaxLengthBytes) != nil
	return bounded && c.overflow(target.Type) != RejectPublish
}

func refuseTarget(target Queue) []Refusal {
	if target.Type != Classic && target.Type != Quorum {
		return []Refusal{{RefusedType, fmt.Sprintf("queue %q is of type %s, which does not dead-letter; use a classic or a quorum queue", target.Name, target.Type)}}
	}
	if owner := target.Arguments.OwnerOf(); owner != "" {
		return []Refusal{{RefusedType, fmt.Sprintf("queue %q is the %s of RetryPolicy %s; a ladder on it would send messages round for ever, so choose another queue", target.Name, target.Arguments.RoleOf(), owner)}}
	}
	if target.Exclusive {
		return []Refusal{{RefusedType, fmt.Sprintf("queue %q is exclusive to one connection; use a queue that is not", target.Name)}}
	}
	var out []Refusal
	for _, key := range []string{KeyDeadLetterExchange, KeyDeadLetterRoutingKey, KeyDeadLetterStrategy} {
		arg := "x-" + key
		harmless := key == KeyDeadLetterStrategy && target.Arguments.String(arg) == AtLeastOnce
		if target.Arguments.Has(arg) && !harmless {
			out = append(out, Refusal{RefusedArgument, fmt.Sprintf(
				"queue %q was declared with the argument %s, which beats every policy; declare the queue without it", target.Name, arg)})
		}
	}
	return out
}

func refusePolicy(below Policy) []Refusal {
	var clashing []string
	for _, key := range []string{KeyDeadLetterExchange, KeyDeadLetterRoutingKey} {
		if below.Definition.Has(key) {
			clashing = append(clashing, key)
		}
	}
	if below.Definition.String(KeyDeadLetterStrategy) == AtMostOnce {
		clashing = append(clashing, KeyDeadLetterStrategy)
	}
	slices.Sort(clashing)
	if len(clashing) == 0 {
		return nil
	}
	return []Refusal{{RefusedPolicy, fmt.Sprintf(
		"policy %q applies to the target and sets %s; take the key out of that policy, or exclude the target from its pattern",
		below.Name, strings.Join(clashing, ", "))}}
}

// refusePattern: the broker says that a policy applies to the target whose pattern can't
// be followed here. Ours would outrank it without repeating its keys.
func refusePattern(observed Topology, target Queue, own string) []Refusal {
	p, ok := observed.InEffect(target)
	if !ok || p.Name == own || p.Matches(target) {
		return nil
	}
	return []Refusal{{RefusedPolicy, fmt.Sprintf(
		"policy %q applies to the target, but its pattern %q can't be followed, so its keys can't be merged; write the pattern more simply, or exclude the target from it",
		p.Name, p.Pattern)}}
}
