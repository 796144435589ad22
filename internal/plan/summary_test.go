/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package plan_test

import (
	"slices"
	"testing"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/plan"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

func TestSummary(t *testing.T) {
	queue := plan.Step{Action: plan.DeclareQueue, Queue: topology.Queue{Name: "a"}, Reason: "queue a is missing"}
	bind := plan.Step{Action: plan.Bind, Binding: topology.Binding{Source: "x", Destination: "a"}, Reason: "binding x -> a is missing"}
	policy := plan.Step{Action: plan.PutPolicy, Policy: topology.Policy{Name: "p"}, Reason: "policy p is missing"}
	for name, tc := range map[string]struct {
		steps []plan.Step
		want  string
	}{
		"few steps are told one by one": {
			[]plan.Step{queue, bind},
			"Applied: declare queue a (queue a is missing); bind x -> a (binding x -> a is missing)",
		},
		"many are counted": {
			slices.Concat([]plan.Step{policy}, slices.Repeat([]plan.Step{queue}, 2), slices.Repeat([]plan.Step{bind}, 3)),
			"Applied 6 changes: 2 queues declared, 3 bindings made, 1 policy written",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plan.Summary(tc.steps); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
