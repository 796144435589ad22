/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package plan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/deadletter"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/plan"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// crowded returns a vhost with n policies in place, and the request of one of them.
func crowded(n int) (topology.Request, topology.Topology) {
	observed := topology.New()
	var request topology.Request
	for i := range n {
		name := fmt.Sprintf("orders-%04d", i)
		request = topology.Request{
			Owner:  topology.Owner{Installation: "bench", Namespace: "shop", Name: name},
			Target: name, MaxAttempts: 4, ParkingLot: topology.DefaultParkingLot(name), QueueType: topology.Quorum,
			Delays: []time.Duration{time.Second, time.Minute, time.Hour}, Retain: true,
		}
		observed.AddQueue(topology.Queue{
			Name: name, Type: topology.Quorum, Durable: true,
			State: &topology.QueueState{Policy: request.PolicyName(), Messages: new(int64(0)), PendingDeadLetters: new(int64(0))},
		})
		wanted := topology.Desired(request, observed).Wanted
		for _, q := range wanted.Queues {
			q.State = &topology.QueueState{Messages: new(int64(0))}
			observed.AddQueue(q)
		}
		for _, e := range wanted.Exchanges {
			observed.AddExchange(e)
		}
		for _, b := range wanted.SortedBindings() {
			observed.Bind(b)
		}
		for _, p := range wanted.Policies {
			observed.AddPolicy(p)
		}
	}
	return request, observed
}

// BenchmarkSteadyReconcile is the thinking of one reconcile in which nothing differs. The
// figure to look at is the ratio between the sizes: what a neighbour costs.
func BenchmarkSteadyReconcile(b *testing.B) {
	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("policies=%d", n), func(b *testing.B) {
			request, observed := crowded(n)
			b.ReportAllocs()
			for b.Loop() {
				ladder := topology.Desired(request, observed)
				if p := plan.Compute(ladder, observed); !p.Done() {
					b.Fatalf("steps where nothing differs: %+v", p)
				}
				if f := deadletter.Prove(ladder, observed); len(f) > 0 {
					b.Fatalf("findings where nothing is wrong: %+v", f)
				}
			}
		})
	}
}
