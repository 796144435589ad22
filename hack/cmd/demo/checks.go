/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
)

// clockSlack is how much too early a delivery may seem: the broker counts in whole
// milliseconds, by a clock of its own.
const clockSlack = 5 * time.Millisecond

// ending is what was found when the last message had come to its end.
type ending struct {
	// Confirmed and Returned count what the broker said to the publisher.
	Confirmed, Returned int
	// Depths are the messages in each queue. One that is absent is unknown.
	Depths map[string]int
	// Parked is what lies in the parking lot.
	Parked []arrival
	// Policy is the RetryPolicy, Table what kubectl shows of it.
	Policy *v1alpha1.RetryPolicy
	Table  string
}

// verdict is one line of the checklist. Problems is empty when the check passed.
type verdict struct {
	Claim    string
	Problems []string
}

func (v verdict) passed() bool { return len(v.Problems) == 0 }

func allPassed(verdicts []verdict) bool {
	return !slices.ContainsFunc(verdicts, func(v verdict) bool { return !v.passed() })
}

// judge checks everything that the demo shows.
func judge(j *journal, e ending) []verdict {
	return []verdict{
		checkConfirms(j, e),
		checkAccounts(j, e),
		checkDeliveries(j),
		checkBrokerCount(j),
		checkDelays(j),
		checkContents(j, e),
		checkDepths(j, e),
		checkCounts(j, e),
		checkConditions(j, e),
		checkTable(j, e),
	}
}

func checkConfirms(j *journal, e ending) verdict {
	n := len(j.script)
	v := verdict{Claim: fmt.Sprintf("the broker confirmed all %d messages", n)}
	v.expect("confirmed", e.Confirmed, n)
	v.expect("returned as unroutable", e.Returned, 0)
	return v
}

// checkAccounts finds each message where it must be, and nowhere else.
func checkAccounts(j *journal, e ending) verdict {
	wanted := j.wantedParked()
	v := verdict{Claim: fmt.Sprintf("nothing lost, nothing twice: %d acknowledged + %d parked = %d published",
		len(j.script)-len(wanted), len(wanted), len(j.script))}
	times := map[string]int{}
	for _, p := range e.Parked {
		times[p.ID]++
	}
	for _, m := range j.script {
		want, acks := 0, j.acknowledgements(m.ID)
		if m.parked(j.ladder.MaxAttempts) {
			want = 1
		}
		v.expect(m.ID+" acknowledged", acks, 1-want)
		v.expect(m.ID+" parked", times[m.ID], want)
		delete(times, m.ID)
	}
	for _, id := range slices.Sorted(maps.Keys(times)) {
		v.fail("%s is parked and was not published by this demo", id)
	}
	v.expect("deliveries of messages of someone else", j.strangers, 0)
	return v
}

func (j *journal) acknowledgements(id string) int {
	n := 0
	for _, d := range j.of(id) {
		if d.Outcome == acknowledge {
			n++
		}
	}
	return n
}

func checkDeliveries(j *journal) verdict {
	v := verdict{Claim: fmt.Sprintf("exactly %d deliveries, at most %d of a message", j.wantedDeliveries(), j.ladder.MaxAttempts)}
	for _, m := range j.script {
		v.expect("deliveries of "+m.ID, len(j.of(m.ID)), m.deliveries(j.ladder.MaxAttempts))
	}
	return v
}

// checkBrokerCount compares what the consumer saw with what the broker wrote down.
func checkBrokerCount(j *journal) verdict {
	v := verdict{Claim: "the broker's own count (x-death) agrees at each delivery"}
	if len(j.deliveries) == 0 {
		v.fail("there was no delivery")
	}
	for _, d := range j.deliveries {
		v.expect(fmt.Sprintf("%s at attempt %d, by x-death", d.ID, d.Attempt), d.BrokerAttempt, d.Attempt)
	}
	return v
}

func checkDelays(j *journal) verdict {
	retries, latest := 0, time.Duration(0)
	v := verdict{}
	for _, d := range j.deliveries {
		if d.Attempt < 2 {
			continue
		}
		retries++
		latest = max(latest, d.Waited-d.Wanted)
		if d.Waited < d.Wanted-clockSlack {
			v.fail("%s came %s after attempt %d, before its %s", d.ID, seconds(d.Waited), d.Attempt-1, d.Wanted)
		}
		if d.Wanted == 0 {
			v.fail("%s came a %d. time, for which there is no tier", d.ID, d.Attempt)
		}
	}
	if retries == 0 {
		v.fail("there was no retry")
	}
	v.Claim = fmt.Sprintf("none of %d retries came before its delay; the latest was %s late", retries, seconds(latest))
	return v
}

func checkContents(j *journal, e ending) verdict {
	v := verdict{Claim: "routing keys, bodies, properties and headers as published, delivered and parked"}
	published := map[string]content{}
	for _, m := range j.script {
		published[m.ID] = m.Content
	}
	for _, d := range j.deliveries {
		for _, difference := range differences(published[d.ID], d.Content) {
			v.fail("%s at attempt %d: %s", d.ID, d.Attempt, difference)
		}
	}
	for _, p := range e.Parked {
		for _, difference := range differences(published[p.ID], p.Content) {
			v.fail("%s in the parking lot: %s", p.ID, difference)
		}
	}
	if len(j.deliveries) == 0 {
		v.fail("there was no delivery")
	}
	return v
}

func checkDepths(j *journal, e ending) verdict {
	parked := len(j.wantedParked())
	v := verdict{Claim: fmt.Sprintf("%s and its tiers are empty, %s holds %d", j.ladder.Queue, j.ladder.ParkingLot, parked)}
	for _, queue := range j.ladder.queues() {
		want := 0
		if queue == j.ladder.ParkingLot {
			want = parked
		}
		got, known := e.Depths[queue]
		if !known {
			v.fail("the depth of %s is unknown", queue)
			continue
		}
		v.expect("messages in "+queue, got, want)
	}
	return v
}

func checkCounts(j *journal, e ending) verdict {
	parked := int64(len(j.wantedParked()))
	v := verdict{Claim: fmt.Sprintf("the status says parked %d, retrying 0", parked)}
	v.expectCount("status.parked.messages", e.Policy.Status.Parked.Messages, parked)
	v.expectCount("status.retrying", e.Policy.Status.Retrying, 0)
	return v
}

func checkConditions(j *journal, e ending) verdict {
	v := verdict{Claim: "the conditions are as they must be, and up to date"}
	wanted := wantedConditions(e.Policy, int64(len(j.wantedParked())))
	if got := e.Policy.Status.ObservedGeneration; got != e.Policy.Generation {
		v.fail("status.observedGeneration is %d instead of %d", got, e.Policy.Generation)
	}
	for _, w := range wanted {
		c := meta.FindStatusCondition(e.Policy.Status.Conditions, w.Type)
		switch {
		case c == nil:
			v.fail("%s is missing", w.Type)
		case c.Status != w.Status || c.Reason != w.Reason:
			v.fail("%s is %s (%s) instead of %s (%s): %s", w.Type, c.Status, c.Reason, w.Status, w.Reason, c.Message)
		case c.ObservedGeneration != e.Policy.Generation:
			v.fail("%s is about generation %d instead of %d", w.Type, c.ObservedGeneration, e.Policy.Generation)
		}
	}
	return v
}

// wantedConditions is the state of a policy on a quorum queue of a healthy broker.
func wantedConditions(p *v1alpha1.RetryPolicy, parked int64) []metav1.Condition {
	lot := metav1.Condition{Type: v1alpha1.ConditionParkingLotHealthy, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonBelowThresholds}
	if limit := p.Spec.ParkingLot.Alert.Messages; limit > 0 && parked >= limit {
		lot.Status, lot.Reason = metav1.ConditionFalse, v1alpha1.ReasonDepthThresholdExceeded
	}
	return []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRetriesActive},
		{Type: v1alpha1.ConditionTopologyReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonTopologyApplied},
		{Type: v1alpha1.ConditionBindingsHealthy, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAllPathsProven},
		{Type: v1alpha1.ConditionDeadLetteringSafe, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNoLossPossible},
		lot,
	}
}

// checkTable reads what kubectl shows, as a person would.
func checkTable(j *journal, e ending) verdict {
	v := verdict{Claim: "kubectl shows the same"}
	row, ok := tableRow(e.Table, e.Policy.Name)
	if !ok {
		v.fail("kubectl shows no %s", e.Policy.Name)
		return v
	}
	for _, want := range [][2]string{
		{"QUEUE", j.ladder.Queue},
		{"STRATEGY", string(v1alpha1.StrategyLadder)},
		{"ATTEMPTS", fmt.Sprint(j.ladder.MaxAttempts)},
		{"RETRYING", "0"},
		{"PARKED", fmt.Sprint(len(j.wantedParked()))},
		{"READY", "True"},
		{"REASON", v1alpha1.ReasonRetriesActive},
	} {
		if got := row[want[0]]; got != want[1] {
			v.fail("column %s shows %q instead of %q", want[0], got, want[1])
		}
	}
	return v
}

// tableRow returns the cells of one object in a table of kubectl's, by column. A cell
// can be empty, so cells are cut where the titles begin.
func tableRow(table, name string) (map[string]string, bool) {
	title, rows, _ := strings.Cut(table, "\n")
	for line := range strings.Lines(rows) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != name {
			continue
		}
		row := map[string]string{}
		line = strings.TrimRight(line, "\n")
		for start := 0; start < len(title); {
			end := nextColumn(title, start)
			row[strings.TrimSpace(title[start:end])] = strings.TrimSpace(line[min(start, len(line)):min(end, len(line))])
			start = end
		}
		return row, true
	}
	return nil, false
}

// nextColumn is where the column that follows the one at start begins: titles may hold
// single blanks, columns are at least two apart.
func nextColumn(title string, start int) int {
	gap := strings.Index(title[start:], "  ")
	if gap < 0 {
		return len(title)
	}
	end := start + gap
	for end < len(title) && title[end] == ' ' {
		end++
	}
	return end
}

func (v *verdict) fail(format string, args ...any) {
	v.Problems = append(v.Problems, fmt.Sprintf(format, args...))
}

func (v *verdict) expect(what string, got, want int) {
	if got != want {
		v.fail("%s: %d instead of %d", what, got, want)
	}
}

func (v *verdict) expectCount(what string, got *int64, want int64) {
	switch {
	case got == nil:
		v.fail("%s is unknown", what)
	case *got != want:
		v.fail("%s is %d instead of %d", what, *got, want)
	}
}
