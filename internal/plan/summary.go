/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package plan

import (
	"fmt"
	"strings"
)

// few steps are told one by one, more are counted.
const few = 4

// actions are all actions, in the order in which a plan takes them.
var actions = []Action{DeclareQueue, DeclareExchange, Bind, PutPolicy, Unbind, DeletePolicy, DeleteExchange, DeleteQueue}

// nouns are what each action is done to, for one and for many.
var nouns = map[Action][2]string{
	DeclareQueue:    {"queue declared", "queues declared"},
	DeclareExchange: {"exchange declared", "exchanges declared"},
	Bind:            {"binding made", "bindings made"},
	PutPolicy:       {"policy written", "policies written"},
	Unbind:          {"binding removed", "bindings removed"},
	DeletePolicy:    {"policy deleted", "policies deleted"},
	DeleteExchange:  {"exchange deleted", "exchanges deleted"},
	DeleteQueue:     {"queue deleted", "queues deleted"},
}

// Summary tells what steps have done, and why, in a line for a person.
func Summary(steps []Step) string {
	if len(steps) <= few {
		reasons := make([]string, 0, len(steps))
		for _, s := range steps {
			reasons = append(reasons, fmt.Sprintf("%s (%s)", s, s.Reason))
		}
		return "Applied: " + strings.Join(reasons, "; ")
	}
	counts := map[Action]int{}
	for _, s := range steps {
		counts[s.Action]++
	}
	var parts []string
	for _, a := range actions {
		if n := counts[a]; n == 1 {
			parts = append(parts, "1 "+nouns[a][0])
		} else if n > 1 {
			parts = append(parts, fmt.Sprintf("%d %s", n, nouns[a][1]))
		}
	}
	return fmt.Sprintf("Applied %d changes: %s", len(steps), strings.Join(parts, ", "))
}
