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

// Ladder is what should be on the broker for one policy, with the names that a reader
// needs to find the way through it.
type Ladder struct {
	Request Request
	Tiers   []Tier
	// DeadLetterExchange is where the target's policy sends dead letters, FirstFailure its
	// alternate exchange, Park the exchange that leads to the parking lot.
	DeadLetterExchange string
	FirstFailure       string
	Park               string
	// TargetFound is set when the target queue was observed.
	TargetFound bool
	// Wanted are the objects themselves.
	Wanted Topology
	// Refusals are what stands in the way of the target's policy; no step is taken while
	// there are any.
	Refusals []Refusal
}

// Desired says what should be on the broker, given what is there: the target's type and
// arguments, the policy to be merged, and what earlier generations have left.
func Desired(r Request, observed Topology) Ladder {
	if r.Deleting {
		return departing(r, observed)
	}
	l := Ladder{Request: r, Tiers: r.tiers(), Park: ParkExchange(r.Target), Wanted: New()}
	_, l.TargetFound = observed.Queues[r.Target]

	l.addParkingLot(observed)
	for _, t := range l.Tiers {
		l.Wanted.AddQueue(r.tierQueue(t))
		l.addReturn(t.Attempt)
	}
	l.addDeadLetterExchange()
	l.addEarlierGenerations(observed)
	l.addPolicy(observed, l.DeadLetterExchange)
	return l
}

func (l *Ladder) addParkingLot(observed Topology) {
	for _, t := range l.Tiers {
		if t.Queue == l.Request.ParkingLot {
			l.Refusals = append(l.Refusals, Refusal{RefusedArgument, fmt.Sprintf(
				"the parking lot %q has the name of the tier of attempt %d, which would deliver parked messages again; give it another name", t.Queue, t.Attempt)})
		}
	}
	l.Wanted.AddQueue(l.Request.parkingLot(observed))
	l.Wanted.AddExchange(l.Request.parkExchange())
	l.Wanted.Bind(Binding{Source: l.Park, Destination: l.Request.ParkingLot})
}

// addReturn adds the way of one attempt back to the target, which can be bound only once
// it is there.
func (l *Ladder) addReturn(attempt int) {
	e := l.Request.returnExchange(attempt)
	l.Wanted.AddExchange(e)
	if l.TargetFound {
		l.Wanted.Bind(Binding{Source: e.Name, Destination: l.Request.Target})
	}
}

// addDeadLetterExchange adds the headers exchange that counts. Its name carries a hash of
// its bindings, so that a change of the ladder makes a new one beside the old, and one
// write of the target's policy moves all dead letters over.
func (l *Ladder) addDeadLetterExchange() {
	r := l.Request
	bindings := l.ladderBindings()
	first := r.ParkingLot
	if len(l.Tiers) > 0 {
		first = l.Tiers[0].Queue
	}
	hash := hashOf(bindings, first)
	l.DeadLetterExchange = deadLetterExchange(r.Target, hash)
	l.FirstFailure = firstFailureExchange(r.Target, hash)

	l.Wanted.AddExchange(r.exchange(l.FirstFailure, Fanout, RoleFirstFailure, nil))
	l.Wanted.Bind(Binding{Source: l.FirstFailure, Destination: first})
	l.Wanted.AddExchange(r.exchange(l.DeadLetterExchange, Headers, RoleDeadLetter, Args{KeyAlternateExchange: l.FirstFailure}))
	for _, b := range bindings {
		b.Source = l.DeadLetterExchange
		l.Wanted.Bind(b)
	}
}

// ladderBindings leads each later failure one tier up, the last to the parking lot, and
// every death that is no rejection there too.
func (l *Ladder) ladderBindings() []Binding {
	r := l.Request
	var out []Binding
	for i := range l.Tiers {
		next := r.ParkingLot
		if i+1 < len(l.Tiers) {
			next = l.Tiers[i+1].Queue
		}
		out = append(out, Binding{Destination: next, Arguments: r.rejectedFrom(l.Tiers[i].Attempt)})
	}
	for _, reason := range parkedReasons {
		out = append(out, Binding{Destination: r.ParkingLot, Arguments: diedOf(reason)})
	}
	return out
}

func hashOf(bindings []Binding, first string) string {
	parts := []string{first}
	for _, b := range bindings {
		parts = append(parts, b.sortKey())
	}
	return shortHash(strings.Join(parts, "|"))
}

// addEarlierGenerations keeps the way home of what still waits in tiers of a longer
// ladder, and parks it if it fails again: it has had all the attempts there are now. A
// message may still be in the target when its tier is long gone, so the binding stays as
// long as some dead-letter exchange of ours has it.
func (l *Ladder) addEarlierGenerations(observed Topology) {
	for _, attempt := range attemptsOnBroker(observed, l.Request) {
		if attempt <= len(l.Tiers) {
			continue
		}
		l.Wanted.Bind(Binding{
			Source:      l.DeadLetterExchange,
			Destination: l.Request.ParkingLot,
			Arguments:   l.Request.rejectedFrom(attempt),
		})
		if tierLeft(observed, l.Request, attempt) {
			l.addReturn(attempt)
		}
	}
}

// attemptsOnBroker lists the attempts that a message under way can have behind it: those
// with a return exchange or with a binding on a dead-letter exchange of ours.
func attemptsOnBroker(observed Topology, r Request) []int {
	byExchange := map[string]int{}
	for a := 1; a < MaxAttempts; a++ {
		byExchange[ReturnExchange(r.Target, a)] = a
	}
	found := map[int]bool{}
	for _, e := range observed.OwnedExchanges(r.Owner) {
		if a, ok := byExchange[e.Name]; ok {
			found[a] = true
		}
		for _, b := range observed.Bindings[e.Name] {
			if a, ok := byExchange[b.Arguments.String("x-last-death-exchange")]; ok {
				found[a] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func tierLeft(observed Topology, r Request, attempt int) bool {
	return slices.ContainsFunc(observed.OwnedQueues(r.Owner), func(q Queue) bool {
		return q.Arguments.RoleOf() == RoleTier && q.Arguments.AttemptOf() == attempt
	})
}

// departing is the topology of a policy that is being deleted: first everything that dies
// is parked and the tiers drain into the target, then nothing is wanted but, where it is
// retained, the parking lot. What is on the broker and not wanted is taken down by the
// plan, each object at the moment when it can hold and lead to nothing.
func departing(r Request, observed Topology) Ladder {
	r.ParkingLot = r.parkingLotThere(observed)
	l := Ladder{Request: r, Park: ParkExchange(r.Target), Wanted: New()}
	_, l.TargetFound = observed.Queues[r.Target]
	if len(observed.OwnedExchanges(r.Owner)) == 0 && len(observed.OwnedQueues(r.Owner)) == 0 {
		return l
	}
	policy, policyThere := r.OwnPolicy(observed)
	draining := slices.ContainsFunc(observed.OwnedQueues(r.Owner), func(q Queue) bool { return q.Arguments.RoleOf() == RoleTier })
	parksAll := policy.Definition.String(KeyDeadLetterExchange) == l.Park
	switch {
	case draining, policyThere && !parksAll:
		l.addParkingLot(observed)
		for a := 1; a < MaxAttempts; a++ {
			if tierLeft(observed, r, a) {
				l.addReturn(a)
			}
		}
		l.addPolicy(observed, l.Park)
	case policyThere:
		l.addParkingLot(observed)
	default:
		l.keepParkingLot(observed)
	}
	return l
}

// keepParkingLot wants each parking lot that is there, the present one and those that had
// another name, when it is retained or not known to be empty.
func (l *Ladder) keepParkingLot(observed Topology) {
	for _, q := range observed.OwnedQueues(l.Request.Owner) {
		empty := q.State != nil && q.State.Messages != nil && *q.State.Messages == 0
		if q.Arguments.RoleOf() == RoleParkingLot && (l.Request.Retain || !empty) {
			q.State = nil
			l.Wanted.AddQueue(q)
		}
	}
}
