/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package deadletter

import (
	"fmt"
	"strings"
	"time"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// HazardKind names a way to lose a message although every path exists; it is the reason
// of a condition.
type HazardKind string

// The kinds of hazard, the most pressing first.
const (
	PolicyShadowed             HazardKind = "PolicyShadowed"
	QueueUnavailable           HazardKind = "QueueUnavailable"
	DeadLettersStalled         HazardKind = "DeadLettersStalled"
	ParkingLotDrops            HazardKind = "ParkingLotDrops"
	DeliveryLimitBelowAttempts HazardKind = "DeliveryLimitBelowAttempts"
	TargetHasOverflow          HazardKind = "TargetHasOverflow"
	ClassicTarget              HazardKind = "ClassicTarget"
	ClassicTiers               HazardKind = "ClassicTiers"
)

// Hazard is one way to lose a message, and what to do about it.
type Hazard struct {
	Kind    HazardKind
	Message string
}

// stalledAfter is how long pending dead letters may stay without becoming fewer. The
// broker itself tries again every three minutes.
const stalledAfter = time.Minute

// defaultDeliveryLimit is RabbitMQ's since 4.0.
const defaultDeliveryLimit = 20

// Hazards lists every way to lose a message that shows in the observed settings and
// states, the most pressing first. The target has to be there.
func Hazards(l topology.Ladder, observed topology.Topology) []Hazard {
	h := hazards{ladder: l, observed: observed}
	h.shadowed()
	h.unavailable()
	h.stalled()
	h.parkingLot()
	h.target()
	h.classicTiers()
	return h.found
}

type hazards struct {
	ladder   topology.Ladder
	observed topology.Topology
	found    []Hazard
}

func (h *hazards) add(kind HazardKind, format string, args ...any) {
	h.found = append(h.found, Hazard{Kind: kind, Message: fmt.Sprintf(format, args...)})
}

// queues are those that were observed: the target, and all of ours, earlier tiers included.
func (h *hazards) queues() []topology.Queue {
	var out []topology.Queue
	if q, ok := h.observed.Queues[h.ladder.Request.Target]; ok {
		out = append(out, q)
	}
	return append(out, h.observed.OwnedQueues(h.ladder.Request.Owner)...)
}

// shadowed finds policies of others that decide where ours should.
func (h *hazards) shadowed() {
	r := h.ladder.Request
	target := h.observed.Queues[r.Target]
	switch p, ok := h.observed.InEffect(target); {
	case !ok:
		h.add(PolicyShadowed, "no policy is in effect on queue %q; policy %q should be", r.Target, r.PolicyName())
	case p.Name != r.PolicyName():
		h.add(PolicyShadowed, "policy %q is in effect on queue %q instead of %q; lower its priority or take the queue out of its pattern", p.Name, r.Target, r.PolicyName())
	}
	for _, q := range h.queues() {
		if q.Arguments.RoleOf() != topology.RoleTier {
			continue
		}
		if what := tierDisturbance(q, h.observed.SettingsOf(q)); what != "" {
			h.add(PolicyShadowed, "a policy sets %s on tier %q; take the queue out of its pattern", what, q.Name)
		}
	}
}

// tierDisturbance names the keys of others that make a tier do what its arguments do not
// ask for.
func tierDisturbance(q topology.Queue, s topology.Settings) string {
	var keys []string
	if own, ok := q.Arguments.Int("x-" + topology.KeyMessageTTL); ok && s.MessageTTL != nil && *s.MessageTTL >= own {
		s.MessageTTL = nil // the tier's own
	}
	if limits := foreignLimits(s); limits != "" {
		keys = append(keys, limits)
	}
	if s.DeadLetterRoutingKey != nil {
		keys = append(keys, topology.KeyDeadLetterRoutingKey)
	}
	if q.Type == topology.Quorum && !s.AtLeastOnce {
		keys = append(keys, topology.KeyOverflow)
	}
	return strings.Join(keys, ", ")
}

// foreignLimits names the keys that make messages leave a queue, or a queue go, although
// nobody asked for it in the ladder.
func foreignLimits(s topology.Settings) string {
	var keys []string
	if s.Bounded() {
		keys = append(keys, topology.KeyMaxLength)
	}
	if s.MessageTTL != nil {
		keys = append(keys, topology.KeyMessageTTL)
	}
	if s.Expires != nil {
		keys = append(keys, topology.KeyExpires)
	}
	return strings.Join(keys, ", ")
}

// unavailable finds queues that can't take messages now. A classic queue on a node that is
// down is "down", a quorum queue without its majority "minority".
func (h *hazards) unavailable() {
	for _, q := range h.queues() {
		switch q.State.Status {
		case "", "running", "idle", "flow":
		default:
			h.add(QueueUnavailable, "queue %q is in state %s; bring its nodes back", q.Name, q.State.Status)
		}
	}
}

func (h *hazards) stalled() {
	for _, q := range h.queues() {
		if q.State.StalledFor >= stalledAfter && q.State.PendingDeadLetters != nil {
			h.add(DeadLettersStalled, "%d dead letters of queue %q have found no way for %s; look at the bindings above, and at what their queue refuses",
				*q.State.PendingDeadLetters, q.Name, q.State.StalledFor.Round(time.Second))
		}
	}
}

func (h *hazards) parkingLot() {
	q, ok := h.observed.Queues[h.ladder.Request.ParkingLot]
	if !ok {
		return
	}
	s := h.observed.SettingsOf(q)
	what := foreignLimits(s)
	if s.DeliveryLimit != nil && *s.DeliveryLimit >= 0 {
		what = strings.TrimPrefix(what+", "+topology.KeyDeliveryLimit, ", ")
	}
	if s.DeadLetterExchange != nil {
		what = strings.TrimPrefix(what+", "+topology.KeyDeadLetterExchange, ", ")
	}
	if what != "" {
		h.add(ParkingLotDrops, "parking lot %q has %s, by a policy or an argument, so parked messages can vanish or go round; take the queue out of that policy's pattern", q.Name, what)
	}
}

func (h *hazards) target() {
	q := h.observed.Queues[h.ladder.Request.Target]
	s := h.observed.SettingsOf(q)
	if s.Bounded() && s.Overflow == "reject-publish-dlx" {
		h.add(TargetHasOverflow, "queue %q has a length limit with overflow reject-publish-dlx: a message that returns while the queue is full stays in its tier, and a copy of it is parked at each try; set overflow to reject-publish", q.Name)
	}
	if q.Type == topology.Classic {
		h.add(ClassicTarget, "queue %q is a classic queue, whose dead letters RabbitMQ moves at most once: one under way while a node stops is lost; use a quorum queue", q.Name)
		return
	}
	limit := int64(defaultDeliveryLimit)
	if s.DeliveryLimit != nil {
		limit = *s.DeliveryLimit
	}
	if limit >= 0 && limit < int64(h.ladder.Request.MaxAttempts) {
		h.add(DeliveryLimitBelowAttempts, "the delivery limit of queue %q is %d, below maxAttempts %d, so a message that is requeued can be parked before it has had its attempts; raise the limit",
			q.Name, limit, h.ladder.Request.MaxAttempts)
	}
	switch p, _ := h.observed.InEffect(q); {
	case s.AtLeastOnce, p.Name != h.ladder.Request.PolicyName(): // the latter has been told
	case s.Bounded():
		h.add(TargetHasOverflow, "queue %q has a length limit with overflow %s, which rules out at-least-once dead-lettering; set overflow to reject-publish, or take the limit off", q.Name, s.Overflow)
	default:
		h.add(TargetHasOverflow, "queue %q has overflow %s, which rules out at-least-once dead-lettering; take the key out of the policy or operator policy that sets it", q.Name, s.Overflow)
	}
}

func (h *hazards) classicTiers() {
	if h.ladder.Request.QueueType == topology.Classic {
		h.add(ClassicTiers, "tiers and parking lot are classic queues, which move dead letters at most once; leave out queueType, or set it to quorum")
	}
}
