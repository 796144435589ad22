/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package e2e

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
)

// piece is one object on the broker that somebody can delete by hand.
type piece struct {
	name string
	path string
	// reasons are those of which one of the two conditions has to show.
	reasons []string
}

func TestWhateverIsDeletedByHandComesBack(t *testing.T) {
	t.Parallel()
	eachTarget(t, func(t *testing.T, w *world, queueType string) {
		w.declare("orders", queueType, nil)
		p := w.policy("orders", "orders", 3, time.Second, 2*time.Second)
		w.ready(p)
		before := w.inventory()
		pieces := w.pieces(p)
		var slowest time.Duration
		for _, x := range pieces {
			seen := w.watchReasons(p)
			deleted := time.Now()
			w.mgmt.must(t, http.MethodDelete, x.path, nil)
			w.Eventually(seen.list).Should(ContainElement(BeElementOf(x.reasons)), func() string { return x.name + "\n" + strings.Join(seen.messages, "\n") + w.describe(p) })
			w.eventually(p, v1alpha1.ConditionReady, "True", v1alpha1.ReasonRetriesActive)
			slowest = max(slowest, time.Since(deleted))
			w.Expect(w.inventory()).To(Equal(before), x.name+" did not come back as it was")
			seen.stop()
		}
		t.Logf("each of %d pieces came back; from its deletion to Ready the slowest took %s, with a poll interval of %s", len(pieces), slowest.Round(time.Millisecond), pollInterval)
	})
}

// pieces lists every single exchange, queue, binding and policy of the ladder.
func (w *world) pieces(p *v1alpha1.RetryPolicy) []piece {
	var out []piece
	const exchange, binding, route = "False ExchangeMissing", "False BindingMissing", "False RouteUnreachable"
	for _, e := range w.mgmt.list(w.t, path("exchanges", w.vhost)) {
		if name, _ := e["name"].(string); strings.HasPrefix(name, "orders.") {
			out = append(out, piece{"exchange " + name, path("exchanges", w.vhost, name), []string{exchange}})
		}
	}
	for _, b := range w.mgmt.list(w.t, path("bindings", w.vhost)) {
		source, _ := b["source"].(string)
		destination, _ := b["destination"].(string)
		key, _ := b["properties_key"].(string)
		if source != "" {
			out = append(out, piece{"binding " + source + " -> " + destination + " " + key,
				path("bindings", w.vhost, "e", source, "q", destination, key), []string{binding, route}})
		}
	}
	for _, q := range w.mgmt.list(w.t, path("queues", w.vhost)) {
		if name, _ := q["name"].(string); name != p.Spec.Queue {
			out = append(out, piece{"queue " + name, path("queues", w.vhost, name), []string{binding}})
		}
	}
	name := "retry-operator." + p.Namespace + "." + p.Name
	return append(out, piece{"policy " + name, path("policies", w.vhost, name), []string{route}})
}

// inventory is all that is on the vhost, without what changes by itself.
func (w *world) inventory() []string {
	var out []string
	for _, kind := range []string{"exchanges", "queues", "policies"} {
		for _, o := range w.mgmt.list(w.t, path(kind, w.vhost)) {
			out = append(out, named(kind, o)+text(o["arguments"])+text(o["definition"])+text(o["type"]))
		}
	}
	for _, b := range w.mgmt.list(w.t, path("bindings", w.vhost)) {
		out = append(out, text(b["source"])+text(b["destination"])+text(b["arguments"]))
	}
	return sorted(out)
}

// reasons collects what BindingsHealthy has said, from a watch that sees every change.
type reasons struct {
	mu  sync.Mutex
	all []string
	// messages are those of the same observations, for a failing test.
	messages []string
	stop     func()
}

func (r *reasons) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.all...)
}

func (w *world) watchReasons(p *v1alpha1.RetryPolicy) *reasons {
	ctx, cancel := context.WithCancel(w.t.Context())
	watcher, err := k8s.Watch(ctx, &v1alpha1.RetryPolicyList{}, client.InNamespace(p.Namespace))
	w.Expect(err).NotTo(HaveOccurred())
	r := &reasons{stop: func() { watcher.Stop(); cancel() }}
	go func() {
		for e := range watcher.ResultChan() {
			if e.Type == watch.Modified {
				r.note(e.Object.(*v1alpha1.RetryPolicy)) //nolint:forcetypeassert // the watch is of this type
			}
		}
	}()
	return r
}

func (r *reasons) note(p *v1alpha1.RetryPolicy) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionBindingsHealthy); c != nil {
		r.all = append(r.all, string(c.Status)+" "+c.Reason)
		r.messages = append(r.messages, c.Message)
	}
}
