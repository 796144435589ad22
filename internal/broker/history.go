/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package broker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// history is what a row of snapshots of one vhost has shown, queue by queue. It is a
// value and knows no clock but the snapshots'. What happens between two looks is not
// seen: a row holds only as long as no gap in it is too long, and it begins anew with
// the process.
type history struct {
	takenAt time.Time
	queues  map[string]queueHistory
}

// queueHistory holds since when, by the end of the first look that showed it, something
// has been so. A zero time stands for "it is not".
type queueHistory struct {
	idleSince    time.Time
	policies     string
	policySince  time.Time
	pending      int64
	stalledSince time.Time
	// disputed is a policy that the broker reports against its rules.
	disputed      string
	disputedSince time.Time
}

// reportLag is longer than the broker's report of the policy in effect can be behind.
const reportLag = 12 * time.Second

// next returns the history with one more snapshot. After a gap longer than maxGap it
// begins anew.
func (h history) next(s Snapshot, maxGap time.Duration) history {
	if s.TakenAt.Sub(h.takenAt) > maxGap {
		h = history{}
	}
	out := history{takenAt: s.TakenAt, queues: make(map[string]queueHistory, len(s.Topology.Queues))}
	bound := destinations(s.Topology)
	for name, q := range s.Topology.Queues {
		if q.State != nil {
			out.queues[name] = h.queues[name].next(q, s, bound[name])
		}
	}
	return out
}

func (p queueHistory) next(q topology.Queue, s Snapshot, bound bool) queueHistory {
	n := queueHistory{policySince: p.policySince}
	if reported, ok := s.disputed[q.Name]; ok {
		n.disputed, n.disputedSince = reported, s.finishedAt
		if reported == p.disputed {
			n.disputedSince = earlier(p.disputedSince, s.finishedAt)
		}
		if s.TakenAt.Sub(n.disputedSince) >= reportLag {
			q.State.Policy, q.State.PolicyUnconfirmed = reported, false
		}
	}
	n.policies = policiesText(s.Topology, q)
	if p.policySince.IsZero() || n.policies != p.policies {
		n.policySince = s.finishedAt
	}
	if !bound && knownEmpty(q) {
		n.idleSince = earlier(p.idleSince, s.finishedAt)
	}
	if pending := q.State.PendingDeadLetters; pending != nil && *pending > 0 {
		n.pending = *pending
		n.stalledSince = s.finishedAt
		if *pending >= p.pending {
			n.stalledSince = earlier(p.stalledSince, s.finishedAt)
		}
	}
	return n
}

// knownEmpty does not take a count for true that a queue without its majority, or
// without a leader, has left behind.
func knownEmpty(q topology.Queue) bool {
	switch q.State.Status {
	case "", "running", "idle", "flow":
		return q.State.Messages != nil && *q.State.Messages == 0
	}
	return false
}

func earlier(since, otherwise time.Time) time.Time {
	if since.IsZero() {
		return otherwise
	}
	return since
}

func destinations(t topology.Topology) map[string]bool {
	bound := map[string]bool{}
	for _, bs := range t.Bindings {
		for _, b := range bs {
			if !b.ToExchange {
				bound[b.Destination] = true
			}
		}
	}
	return bound
}

// policiesText tells policies in effect apart by name and definition.
func policiesText(t topology.Topology, q topology.Queue) string {
	var sb strings.Builder
	for _, p := range []topology.Policy{t.Policies[q.State.Policy], t.OperatorPolicies[q.State.OperatorPolicy]} {
		fmt.Fprintf(&sb, "%q{", p.Name)
		for _, k := range slices.Sorted(maps.Keys(p.Definition)) {
			fmt.Fprintf(&sb, "%q:%#v,", k, p.Definition[k])
		}
		sb.WriteString("}")
	}
	return sb.String()
}

// tell writes the durations into the states of the last snapshot's queues.
func (h history) tell(t topology.Topology) {
	for name, q := range t.Queues {
		if p, ok := h.queues[name]; ok && q.State != nil {
			q.State.IdleFor = h.since(p.idleSince)
			q.State.PolicyFor = h.since(p.policySince)
			q.State.StalledFor = h.since(p.stalledSince)
		}
	}
}

func (h history) since(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return max(0, h.takenAt.Sub(t))
}
