/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package main

import (
	"slices"
	"testing"
	"time"
)

func TestTheScriptHasThreeKindsOfMessages(t *testing.T) {
	kinds, keys := map[int]int{}, map[string]bool{}
	for _, m := range writeScript("run-1", 12) {
		kinds[m.Failures]++
		keys[m.Content.RoutingKey] = true
	}
	if kinds[0] != 4 || kinds[2] != 4 || kinds[forGood] != 4 {
		t.Errorf("kinds: %v", kinds)
	}
	if len(keys) != 4 {
		t.Errorf("routing keys: %v", keys)
	}
}

func TestDeliveriesOfAMessageAreBoundedByTheLadder(t *testing.T) {
	tests := map[string]struct {
		failures, maxAttempts, deliveries int
		parked                            bool
	}{
		"it succeeds at once":             {0, 4, 1, false},
		"it succeeds after two failures":  {2, 4, 3, false},
		"it succeeds at the last attempt": {3, 4, 4, false},
		"it never succeeds":               {forGood, 4, 4, true},
		"two failures are too many":       {2, 2, 2, true},
		"without retries it is parked":    {forGood, 1, 1, true},
		"without retries it may succeed":  {0, 1, 1, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := message{Failures: tc.failures}
			if got := m.deliveries(tc.maxAttempts); got != tc.deliveries {
				t.Errorf("deliveries: %d, want %d", got, tc.deliveries)
			}
			if got := m.parked(tc.maxAttempts); got != tc.parked {
				t.Errorf("parked: %t, want %t", got, tc.parked)
			}
		})
	}
}

func TestTheJournalMeasuresFromTheAnswerBefore(t *testing.T) {
	j := newJournal(testLadder(), writeScript("run-1", 3))
	m := j.script[1] // fails twice
	for _, step := range []struct {
		at, waited, wanted time.Duration
		outcome            outcome
		last               bool
	}{
		{at: time.Second, outcome: reject},
		{at: 2105 * time.Millisecond, waited: 1005 * time.Millisecond, wanted: time.Second, outcome: reject},
		{at: 4210 * time.Millisecond, waited: 2005 * time.Millisecond, wanted: 2 * time.Second, outcome: acknowledge},
	} {
		d, ok := j.record(arrival{ID: m.ID, Content: m.Content, At: step.at})
		if !ok || d.Waited != step.waited || d.Wanted != step.wanted || d.Outcome != step.outcome || d.Last {
			t.Errorf("%+v, want %+v", d, step)
		}
		j.answered(d, step.at+100*time.Millisecond)
	}
	if j.done() || j.count(acknowledge) != 1 {
		t.Errorf("done %t, acknowledged %d", j.done(), j.count(acknowledge))
	}
}

func TestTheWaitFollowsTheTiers(t *testing.T) {
	l := testLadder()
	var got []time.Duration
	for attempt := range 6 {
		got = append(got, l.wait(attempt))
	}
	want := []time.Duration{0, 0, time.Second, 2 * time.Second, 4 * time.Second, 0}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if l.climb() != 7*time.Second {
		t.Errorf("climb: %s", l.climb())
	}
}
