/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package deadletter

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// FindingKind says what is wrong on a path; it is the reason of a condition.
type FindingKind string

// The kinds of finding.
const (
	ExchangeMissing  FindingKind = "ExchangeMissing"
	BindingMissing   FindingKind = "BindingMissing"
	RouteUnreachable FindingKind = "RouteUnreachable"
)

// Finding is a path that does not lead where it should.
type Finding struct {
	Kind    FindingKind
	Message string
}

// Prove walks every path of the ladder through an observed topology: each failure to its
// tier, each tier back to the target, each kind of death to the parking lot, and each
// tier to the parking lot should the target be gone. No finding means that all exist.
func Prove(l topology.Ladder, observed topology.Topology) []Finding {
	w := walk{ladder: l, observed: observed}
	w.climb()
	w.loseTarget()
	return w.findings
}

type walk struct {
	ladder   topology.Ladder
	observed topology.Topology
	findings []Finding
}

// climb follows one message that fails at each attempt, with all that it has been
// through, and lets it die in every other way on each step.
func (w *walk) climb() {
	target := w.ladder.Request.Target
	if !w.ladder.TargetFound {
		w.find(RouteUnreachable, "queue %q does not exist, so nothing can return to it", target)
		return
	}
	m := Publish("", target, nil)
	for attempt := 1; ; attempt++ {
		for _, reason := range Automatic {
			w.expect(w.observed, target, m, reason, w.ladder.Request.ParkingLot)
		}
		if attempt > len(w.ladder.Tiers) {
			w.expect(w.observed, target, m, Rejected, w.ladder.Request.ParkingLot)
			return
		}
		tier := w.ladder.Tiers[attempt-1]
		w.expect(w.observed, target, m, Rejected, tier.Queue)
		m = m.died(target, Rejected)
		m.Exchange = w.ladder.DeadLetterExchange
		w.expect(w.observed, tier.Queue, m, Expired, target)
		m = m.died(tier.Queue, Expired)
		m.Exchange = tier.Return
	}
}

// loseTarget takes the target away and looks where its tiers lead then.
func (w *walk) loseTarget() {
	without := w.ladderAlone()
	without.RemoveQueue(w.ladder.Request.Target)
	for _, tier := range w.ladder.Tiers {
		m := Publish("", w.ladder.Request.Target, nil).died(w.ladder.Request.Target, Rejected)
		w.expect(without, tier.Queue, m, Expired, w.ladder.Request.ParkingLot)
	}
}

// ladderAlone is what can be reached from the ladder's exchanges: enough for the way from
// its tiers, and small beside a vhost of thousands of queues.
func (w *walk) ladderAlone() topology.Topology {
	part := topology.New()
	part.Policies, part.OperatorPolicies = w.observed.Policies, w.observed.OperatorPolicies
	for name := range w.ladder.Wanted.Queues {
		w.copyQueue(part, name)
	}
	pending := slices.Collect(maps.Keys(w.ladder.Wanted.Exchanges))
	for len(pending) > 0 {
		name := pending[0]
		pending = pending[1:]
		e, ok := w.observed.Exchanges[name]
		if _, done := part.Exchanges[name]; done || !ok {
			continue
		}
		part.AddExchange(e)
		part.Bindings[name] = w.observed.Bindings[name]
		for _, b := range part.Bindings[name] {
			if b.ToExchange {
				pending = append(pending, b.Destination)
			} else {
				w.copyQueue(part, b.Destination)
			}
		}
		if alternate, ok := w.observed.AlternateOf(e); ok {
			pending = append(pending, alternate)
		}
	}
	return part
}

func (w *walk) copyQueue(to topology.Topology, name string) {
	if q, ok := w.observed.Queues[name]; ok {
		to.AddQueue(q)
	}
}

// expect lets the message die and reports it unless it arrives in the one right queue of
// the ladder. A copy for a queue outside of it, somebody's tap, is no concern of ours.
func (w *walk) expect(t topology.Topology, queue string, m Message, reason Reason, want string) {
	if _, ok := t.Queues[queue]; !ok {
		w.find(BindingMissing, "queue %q is missing, and its bindings with it", queue)
		return
	}
	fate := Die(t, queue, m, reason)
	arrived := slices.DeleteFunc(fate.Queues(), func(q string) bool { return !w.inLadder(q) })
	if slices.Equal(arrived, []string{want}) {
		if keys := fate.Deliveries[0].Message.Keys; !slices.Equal(keys, m.Keys) {
			w.find(RouteUnreachable, "a message %s in %q arrives with the routing key %s instead of its own", deathText[reason], queue, quoted(keys))
		}
		return
	}
	path := fmt.Sprintf("a message %s in %q", deathText[reason], queue)
	switch {
	case len(fate.Routing.Missing) > 0:
		w.find(ExchangeMissing, "%s should go to %q, but exchange %q is missing", path, want, fate.Routing.Missing[0])
	case len(arrived) > 0:
		w.wrongWay(t, fate, path, want, arrived)
	case fate.Loss == Unroutable:
		w.find(BindingMissing, "%s should go to %q, but no binding of exchange %s leads there", path, want, quoted(fate.Routing.Visited))
	default:
		w.find(RouteUnreachable, "%s should go to %q, but %s", path, want, lossText(fate))
	}
}

// wrongWay: where the binding that should have taken the message is not there, an
// alternate exchange or a later binding has caught it.
func (w *walk) wrongWay(t topology.Topology, fate Fate, path, want string, arrived []string) {
	kind := RouteUnreachable
	if !slices.Contains(arrived, want) && w.bindingMissing(t, fate.Routing.Visited, want) {
		kind = BindingMissing
	}
	w.find(kind, "%s should go to %q alone, but goes to %s", path, want, quoted(arrived))
}

// bindingMissing reports whether one of the exchanges lacks a wanted binding to the queue.
func (w *walk) bindingMissing(t topology.Topology, exchanges []string, queue string) bool {
	for _, e := range exchanges {
		for _, b := range w.ladder.Wanted.Bindings[e] {
			if b.Destination == queue && !t.Bound(b) {
				return true
			}
		}
	}
	return false
}

func (w *walk) inLadder(queue string) bool {
	_, wanted := w.ladder.Wanted.Queues[queue]
	return wanted || queue == w.ladder.Request.Target
}

func (w *walk) find(kind FindingKind, format string, args ...any) {
	f := Finding{Kind: kind, Message: fmt.Sprintf(format, args...)}
	if !slices.Contains(w.findings, f) {
		w.findings = append(w.findings, f)
	}
}

var deathText = map[Reason]string{
	Rejected:      "rejected",
	Expired:       "expired",
	MaxLen:        "dropped for the queue's length",
	DeliveryLimit: "over the delivery limit",
}

// lossText names no loss when copies went only to queues outside the ladder.
func lossText(f Fate) string {
	switch {
	case f.Loss == "":
		return "goes to " + quoted(f.Queues()) + " alone"
	case f.Stalled:
		return "is held back: " + string(f.Loss)
	}
	return "is lost: " + string(f.Loss)
}

func quoted(names []string) string {
	out := make([]string, 0, len(names))
	for _, n := range names {
		out = append(out, fmt.Sprintf("%q", n))
	}
	return strings.Join(out, ", ")
}
