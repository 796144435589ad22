/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package main

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// ladder is what a policy promises, as its status says it.
type ladder struct {
	Queue       string
	ParkingLot  string
	MaxAttempts int
	Tiers       []tier
}

// tier is the wait that follows the failed attempt of the same number, from 1.
type tier struct {
	Queue string
	Delay time.Duration
}

// queues lists every queue that can hold a message, in the order of the climb.
func (l ladder) queues() []string {
	all := []string{l.Queue}
	for _, t := range l.Tiers {
		all = append(all, t.Queue)
	}
	return append(all, l.ParkingLot)
}

// wait is how long a message waits before the given attempt: nothing before the first.
func (l ladder) wait(attempt int) time.Duration {
	if attempt < 2 || attempt-2 >= len(l.Tiers) {
		return 0
	}
	return l.Tiers[attempt-2].Delay
}

// climb is how long a message that always fails is on its way.
func (l ladder) climb() time.Duration {
	var sum time.Duration
	for _, t := range l.Tiers {
		sum += t.Delay
	}
	return sum
}

// content is what a publisher gives to the broker and a consumer must get unchanged.
type content struct {
	RoutingKey string
	Body       string
	Properties map[string]string
	Headers    map[string]any
}

// brokerHeader says whether the broker adds a header on the way.
func brokerHeader(name string) bool {
	switch name {
	case "x-death", "x-delivery-count", "x-acquired-count":
		return true
	}
	return strings.HasPrefix(name, "x-first-death-") || strings.HasPrefix(name, "x-last-death-")
}

// forGood is the number of failures of a message that never succeeds.
const forGood = math.MaxInt

// message is one message of the demo, and how often the consumer fails on it.
type message struct {
	ID       string
	Content  content
	Failures int
}

// deliveries is how often the consumer must see the message.
func (m message) deliveries(maxAttempts int) int {
	return min(m.Failures, maxAttempts-1) + 1
}

// parked says whether the message must end in the parking lot.
func (m message) parked(maxAttempts int) bool { return m.Failures >= maxAttempts }

// writeScript makes n messages: a third succeeds at once, a third after two failures, and a
// third never. run tells the messages of one demo from another's.
func writeScript(run string, n int) []message {
	events := []string{"created", "paid", "shipped", "eu.returned"}
	failures := []int{0, 2, forGood}
	script := make([]message, 0, n)
	for i := range n {
		id := fmt.Sprintf("order-%02d", i+1)
		script = append(script, message{
			ID:       id,
			Failures: failures[i%len(failures)],
			Content: content{
				RoutingKey: "order." + events[i%len(events)],
				Body:       fmt.Sprintf(`{"order":%d,"amount":"%d.95 €"}`, i+1, 10+i),
				Properties: map[string]string{
					propertyMessageID:     id,
					propertyAppID:         appID,
					propertyContentType:   "application/json",
					propertyType:          "order",
					propertyCorrelationID: run + "/" + id,
					propertyDeliveryMode:  "2", // persistent
				},
				Headers: map[string]any{
					headerRun: run,
					"number":  int64(i + 1),
					"express": i%2 == 0,
					"trace":   map[string]any{"parent": fmt.Sprintf("%016x", i+1), "hops": []any{"web", "cart"}},
				},
			},
		})
	}
	return script
}

const (
	// appID marks the messages that a demo may delete again.
	appID     = "rabbitmq-retry-operator-demo"
	headerRun = "demo-run"
)
