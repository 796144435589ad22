/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package topology

import (
	"time"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
)

// Request is what a RetryPolicy asks for, without Kubernetes around it.
type Request struct {
	Owner       Owner
	Target      string
	MaxAttempts int
	// Delays are the tiers of the spec. With fewer than there are retries the last repeats.
	Delays     []time.Duration
	ParkingLot string
	QueueType  string
	// Retain leaves the parking lot where it is when the policy is deleted, empty or not.
	Retain bool
	// Deleting is set once the policy is on its way out.
	Deleting bool
}

// RequestFor reads a RetryPolicy.
func RequestFor(p *v1alpha1.RetryPolicy, installation string) Request {
	r := Request{
		Owner:       Owner{Installation: installation, Namespace: p.Namespace, Name: p.Name},
		Target:      p.Spec.Queue,
		MaxAttempts: int(p.Spec.MaxAttempts),
		ParkingLot:  p.Spec.ParkingLot.QueueName,
		QueueType:   string(p.Spec.EffectiveQueueType()),
		Retain:      p.Spec.EffectiveDeletionPolicy() == v1alpha1.DeletionPolicyRetain,
		Deleting:    !p.DeletionTimestamp.IsZero(),
	}
	if r.ParkingLot == "" {
		r.ParkingLot = DefaultParkingLot(r.Target)
	}
	for _, t := range p.Spec.Backoff.Tiers {
		r.Delays = append(r.Delays, t.Delay.Duration)
	}
	return r
}

// Tier is the wait after one failed attempt.
type Tier struct {
	Attempt int
	Delay   time.Duration
	Queue   string
	// Return is the exchange that leads from the tier back to the target.
	Return string
}

// tiers lists one tier for each attempt that can be retried.
func (r Request) tiers() []Tier {
	var out []Tier
	for a := 1; a < r.MaxAttempts && len(r.Delays) > 0; a++ {
		delay := r.Delays[min(a, len(r.Delays))-1]
		out = append(out, Tier{
			Attempt: a,
			Delay:   delay,
			Queue:   TierQueue(r.Target, a, delay, r.QueueType),
			Return:  ReturnExchange(r.Target, a),
		})
	}
	return out
}

// PolicyName is the name of the RabbitMQ policy that sends the target's dead letters up
// the ladder.
func (r Request) PolicyName() string { return policyName(r.Owner.Namespace, r.Owner.Name) }

// queue returns a durable queue of ours.
func (r Request) queue(name string, role Role, more Args) Queue {
	args := r.Owner.args(role, more)
	args["x-queue-type"] = r.QueueType
	return Queue{Name: name, Type: r.QueueType, Durable: true, Arguments: args}
}

func (r Request) tierQueue(t Tier) Queue {
	args := Args{
		ArgAttempt:                   int64(t.Attempt),
		"x-" + KeyMessageTTL:         t.Delay.Milliseconds(),
		"x-" + KeyDeadLetterExchange: t.Return,
	}
	if r.QueueType == Quorum {
		// The two that make the hop at-least-once: the message stays until its target confirms.
		args["x-"+KeyDeadLetterStrategy] = AtLeastOnce
		args["x-"+KeyOverflow] = RejectPublish
	}
	return r.queue(t.Queue, RoleTier, args)
}

// parkingLot gives no message up however often it is read: without the limit of -1 a quorum
// queue drops what was returned to it twenty times.
// One that is there keeps its type when the policy's changes, since what is parked stays.
func (r Request) parkingLot(observed Topology) Queue {
	have, ok := observed.Queues[r.ParkingLot]
	if ok && have.Arguments.OwnerOf() == r.Owner.String() && (have.Type == Classic || have.Type == Quorum) {
		r.QueueType = have.Type
	}
	args := Args{}
	if r.QueueType == Quorum {
		args["x-"+KeyDeliveryLimit] = int64(-1)
	}
	return r.queue(r.ParkingLot, RoleParkingLot, args)
}

// parkingLotThere names a parking lot of this policy that is on the broker: the one of the
// spec, unless that is missing or somebody else's and there is another.
func (r Request) parkingLotThere(observed Topology) string {
	name := r.ParkingLot
	for _, q := range observed.OwnedQueues(r.Owner) {
		if q.Name == r.ParkingLot {
			return q.Name
		}
		if q.Arguments.RoleOf() == RoleParkingLot {
			name = q.Name
		}
	}
	return name
}

// exchange returns a durable exchange of ours. It is internal, so that no client can
// publish into the middle of a ladder.
func (r Request) exchange(name, kind string, role Role, more Args) Exchange {
	return Exchange{Name: name, Type: kind, Durable: true, Internal: true, Arguments: r.Owner.args(role, more)}
}

func (r Request) returnExchange(attempt int) Exchange {
	return r.exchange(ReturnExchange(r.Target, attempt), Fanout, RoleReturn, Args{
		ArgAttempt: int64(attempt),
		// What returns while the target is gone is parked, not dropped.
		KeyAlternateExchange: ParkExchange(r.Target),
	})
}

func (r Request) parkExchange() Exchange {
	return r.exchange(ParkExchange(r.Target), Fanout, RolePark, nil)
}

// rejectedFrom matches a message that came to the target through the return exchange of
// an attempt and was rejected. Plain "all" would ignore keys that begin with x- and so
// match every message.
func (r Request) rejectedFrom(attempt int) Args {
	return Args{
		"x-match":               "all-with-x",
		"x-last-death-reason":   "rejected",
		"x-last-death-exchange": ReturnExchange(r.Target, attempt),
	}
}

// parkedReasons are the deaths that are no rejection. Sent round a tier they would come
// back as a cycle without a rejection, which the broker drops without a trace.
var parkedReasons = []string{"expired", "maxlen", "delivery_limit"}

func diedOf(reason string) Args {
	return Args{"x-match": "all-with-x", "x-last-death-reason": reason}
}

// OwnPolicy returns the policy on the target that an earlier apply has written. Its name
// does not say which installation wrote it, and two that share a broker may both have a
// RetryPolicy of this namespace and name: where another owner has claimed the target it is
// not ours, and with another pattern only if it leads to an exchange of ours, as it does
// when somebody has changed the pattern by hand.
func (r Request) OwnPolicy(observed Topology) (Policy, bool) {
	p, ok := observed.Policies[r.PolicyName()]
	park, claimed := observed.Exchanges[ParkExchange(r.Target)]
	if !ok || claimed && park.Arguments.OwnerOf() != r.Owner.String() {
		return Policy{}, false
	}
	leadsTo := observed.Exchanges[p.Definition.String(KeyDeadLetterExchange)]
	return p, p.Pattern == ExactPattern(r.Target) || leadsTo.Arguments.OwnerOf() == r.Owner.String()
}
