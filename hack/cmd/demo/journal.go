/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// outcome is what the consumer does with a delivery.
type outcome string

const (
	acknowledge outcome = "ack"
	reject      outcome = "reject"
)

// arrival is a delivery as it came in.
type arrival struct {
	ID      string
	Content content
	// BrokerAttempt is the broker's own count: one more than the rejections in x-death.
	BrokerAttempt int
	// At is when it came in, from the start of the demo.
	At time.Duration
}

// delivery is an arrival with what the journal makes of it.
type delivery struct {
	arrival
	// Attempt is how often the message has come in, this time included.
	Attempt int
	// Waited is the time since the reject before; Wanted is what the ladder promises.
	Waited, Wanted time.Duration
	Outcome        outcome
	// Last says that the ladder parks the message if this delivery is rejected.
	Last bool
}

// journal is the consumer's book of one demo.
type journal struct {
	ladder     ladder
	script     []message
	deliveries []delivery
	settled    map[string]time.Duration // when the last delivery of a message was answered
	ended      map[string]outcome       // messages that must not come again
	strangers  int
}

func newJournal(l ladder, script []message) *journal {
	return &journal{ladder: l, script: script, settled: map[string]time.Duration{}, ended: map[string]outcome{}}
}

// record books an arrival and decides what the consumer does with it. It returns false
// for what is not of this demo; the consumer acknowledges that.
func (j *journal) record(a arrival) (delivery, bool) {
	i := slices.IndexFunc(j.script, func(m message) bool {
		return m.ID == a.ID && m.Content.Headers[headerRun] == a.Content.Headers[headerRun]
	})
	if i < 0 {
		j.strangers++
		return delivery{}, false
	}
	d := delivery{arrival: a, Attempt: len(j.of(a.ID)) + 1, Outcome: reject}
	d.Last = d.Attempt >= j.ladder.MaxAttempts
	d.Wanted = j.ladder.wait(d.Attempt)
	if d.Attempt > 1 {
		d.Waited = a.At - j.settled[a.ID]
	}
	// What comes after its end shows that the ladder is broken; a reject could go on for ever.
	if _, again := j.ended[a.ID]; again || d.Attempt > j.script[i].Failures {
		d.Outcome = acknowledge
	}
	j.deliveries = append(j.deliveries, d)
	return d, true
}

// answered books when the consumer was about to answer a delivery: the wait cannot begin earlier.
func (j *journal) answered(d delivery, at time.Duration) {
	j.settled[d.ID] = at
	if _, again := j.ended[d.ID]; !again && (d.Outcome == acknowledge || d.Last) {
		j.ended[d.ID] = d.Outcome
	}
}

// done says whether every message came to its end.
func (j *journal) done() bool { return len(j.ended) == len(j.script) }

// count is the number of messages that ended with an outcome.
func (j *journal) count(o outcome) int {
	n := 0
	for _, e := range j.ended {
		if e == o {
			n++
		}
	}
	return n
}

func (j *journal) of(id string) []delivery {
	var all []delivery
	for _, d := range j.deliveries {
		if d.ID == id {
			all = append(all, d)
		}
	}
	return all
}

// wantedDeliveries and wantedParked are what the script and the ladder add up to.
func (j *journal) wantedDeliveries() int {
	n := 0
	for _, m := range j.script {
		n += m.deliveries(j.ladder.MaxAttempts)
	}
	return n
}

func (j *journal) wantedParked() []string {
	var ids []string
	for _, m := range j.script {
		if m.parked(j.ladder.MaxAttempts) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// differences lists what a consumer got other than published, apart from what the broker adds.
func differences(published, got content) []string {
	var all []string
	add := func(what string, p, g any) {
		if !reflect.DeepEqual(p, g) {
			all = append(all, fmt.Sprintf("%s is %v instead of %v", what, g, p))
		}
	}
	add("routing key", published.RoutingKey, got.RoutingKey)
	add("body", published.Body, got.Body)
	for _, name := range keysOf(published.Properties, got.Properties) {
		add(strings.ReplaceAll(name, "_", " "), published.Properties[name], got.Properties[name])
	}
	for _, name := range keysOf(published.Headers, got.Headers) {
		if !brokerHeader(name) {
			add("header "+name, published.Headers[name], got.Headers[name])
		}
	}
	return all
}

func keysOf[V any](a, b map[string]V) []string {
	var keys []string
	for _, m := range []map[string]V{a, b} {
		for k := range m {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
