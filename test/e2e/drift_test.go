/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package e2e

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
)

// What a condition says of what somebody has broken.
const (
	noExchange = v1alpha1.ConditionBindingsHealthy + " False " + v1alpha1.ReasonExchangeMissing
	noBinding  = v1alpha1.ConditionBindingsHealthy + " False " + v1alpha1.ReasonBindingMissing
	wrongRoute = v1alpha1.ConditionBindingsHealthy + " False " + v1alpha1.ReasonRouteUnreachable
	shadowed   = v1alpha1.ConditionDeadLetteringSafe + " False " + v1alpha1.ReasonPolicyShadowed
)

// piece is one object on the broker that somebody can delete by hand.
type piece struct {
	name string
	path string
	// said is what the status has to say once it is gone.
	said string
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
			w.expectSaid(p, seen, x.name, x.said)
			w.eventually(p, v1alpha1.ConditionReady, "True", v1alpha1.ReasonRetriesActive)
			slowest = max(slowest, time.Since(deleted))
			w.Expect(w.inventory()).To(Equal(before), x.name+" did not come back as it was")
			seen.stop()
		}
		t.Logf("each of %d pieces came back; from its deletion to Ready the slowest took %s, with a poll interval of %s", len(pieces), slowest.Round(time.Millisecond), pollInterval)
	})
}

// expectSaid waits until the status has said each of what is to be said of a thing.
func (w *world) expectSaid(p *v1alpha1.RetryPolicy, seen *reasons, thing string, said ...string) {
	w.t.Helper()
	for _, text := range said {
		w.Eventually(seen.list).Should(ContainElement(text), func() string { return thing + "\n" + seen.text() + w.describe(p) })
	}
}

// pieces lists every single exchange, queue, binding and policy of the ladder.
func (w *world) pieces(p *v1alpha1.RetryPolicy) []piece {
	var out []piece
	for _, e := range w.mgmt.list(w.t, path("exchanges", w.vhost)) {
		if name, _ := e["name"].(string); strings.HasPrefix(name, "orders.") {
			out = append(out, piece{"exchange " + name, path("exchanges", w.vhost, name), noExchange})
		}
	}
	for _, b := range w.mgmt.list(w.t, path("bindings", w.vhost)) {
		source, _ := b["source"].(string)
		destination, _ := b["destination"].(string)
		key, _ := b["properties_key"].(string)
		if source != "" {
			out = append(out, piece{"binding " + source + " -> " + destination + " " + key,
				path("bindings", w.vhost, "e", source, "q", destination, key), noBinding})
		}
	}
	for _, q := range w.mgmt.list(w.t, path("queues", w.vhost)) {
		if name, _ := q["name"].(string); name != p.Spec.Queue {
			out = append(out, piece{"queue " + name, path("queues", w.vhost, name), noBinding})
		}
	}
	return append(out, piece{"policy " + ourPolicy(p), path("policies", w.vhost, ourPolicy(p)), wrongRoute})
}

// ourPolicy is the name of the RabbitMQ policy that a RetryPolicy has on its target.
func ourPolicy(p *v1alpha1.RetryPolicy) string { return "retry-operator." + p.Namespace + "." + p.Name }

func TestAPolicyThatIsChangedByHandIsPutRight(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		// change is what somebody does to our policy.
		change map[string]any
		// said is empty where every message still finds its way.
		said []string
	}{
		"another dead-letter exchange": {
			map[string]any{"definition": map[string]any{"dead-letter-exchange": "elsewhere"}}, []string{noExchange}},
		"another dead-letter exchange that is there": {
			map[string]any{"definition": map[string]any{"dead-letter-exchange": "amq.fanout"}}, []string{noBinding}},
		"a priority below somebody else's": {
			map[string]any{"priority": 0}, []string{wrongRoute, shadowed}},
		"a pattern that finds our own queues too": {
			map[string]any{"pattern": "^orders"}, nil},
		"a pattern that does not find the target": {
			map[string]any{"pattern": "^order$"}, []string{wrongRoute, shadowed}},
		"application to exchanges": {
			map[string]any{"apply-to": "exchanges"}, []string{wrongRoute, shadowed}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachTarget(t, func(t *testing.T, w *world, queueType string) {
				// A key that both types of queue know and that rules nothing out.
				w.mgmt.must(t, http.MethodPut, path("policies", w.vhost, "theirs"), map[string]any{
					"pattern": ".*", "apply-to": "queues", "priority": 5, "definition": map[string]any{"consumer-timeout": 3600000}})
				w.declare("orders", queueType, nil)
				p := w.policy("orders", "orders", 3, time.Second, 2*time.Second)
				w.ready(p)
				before := w.inventory()
				seen := w.watchReasons(p)
				defer seen.stop()

				w.changePolicy(ourPolicy(p), c.change)
				w.expectSaid(p, seen, name, c.said...)
				w.Eventually(w.inventory).Should(Equal(before), func() string { return w.describe(p) })
				w.eventually(p, v1alpha1.ConditionReady, "True", v1alpha1.ReasonRetriesActive)
				w.Eventually(func() string { return w.policyOf("orders") }).Should(Equal(ourPolicy(p)))
			})
		})
	}
}

// changePolicy writes a policy anew with some of its fields, or keys of its definition, changed.
func (w *world) changePolicy(name string, change map[string]any) {
	w.t.Helper()
	where := path("policies", w.vhost, name)
	have, _ := w.mgmt.must(w.t, http.MethodGet, where, nil).(map[string]any)
	for field, value := range change {
		if keys, ok := value.(map[string]any); ok {
			old, _ := have[field].(map[string]any)
			maps.Copy(old, keys)
			continue
		}
		have[field] = value
	}
	w.mgmt.must(w.t, http.MethodPut, where, map[string]any{
		"pattern": have["pattern"], "apply-to": have["apply-to"], "priority": have["priority"], "definition": have["definition"]})
}

func TestABindingThatIsAddedByHandIsTakenOff(t *testing.T) {
	t.Parallel()
	eachTarget(t, func(t *testing.T, w *world, queueType string) {
		w.declare("orders", queueType, nil)
		p := w.policy("orders", "orders", 3, time.Second, 2*time.Second)
		w.ready(p)
		before := w.inventory()
		cases := map[string]string{
			"from our dead-letter exchange to the parking lot": w.deadLetterExchange(p),
			"from a return exchange to the parking lot":        "orders.retry.1.return",
		}
		for name, source := range cases {
			t.Run(name, func(t *testing.T) {
				seen := w.watchReasons(p)
				defer seen.stop()
				w.mgmt.must(t, http.MethodPost, path("bindings", w.vhost, "e", source, "q", "orders.parked"),
					map[string]any{"routing_key": "", "arguments": map[string]any{"x-match": "any-with-x", "x-last-death-reason": "rejected"}})
				w.expectSaid(p, seen, name, wrongRoute)
				w.Eventually(w.inventory).Should(Equal(before), func() string { return w.describe(p) })
				w.eventually(p, v1alpha1.ConditionReady, "True", v1alpha1.ReasonRetriesActive)
			})
		}
	})
}

// deadLetterExchange is where our policy sends what dies in the target.
func (w *world) deadLetterExchange(p *v1alpha1.RetryPolicy) string {
	w.t.Helper()
	have, _ := w.mgmt.must(w.t, http.MethodGet, path("policies", w.vhost, ourPolicy(p)), nil).(map[string]any)
	definition, _ := have["definition"].(map[string]any)
	name, _ := definition["dead-letter-exchange"].(string)
	w.Expect(name).NotTo(BeEmpty())
	return name
}

func TestWhatWasPutBackIsToldInAnEventAndInTheLog(t *testing.T) {
	t.Parallel()
	eachBroker(t, func(t *testing.T, version string) {
		w := newWorld(t, version)
		w.declare("orders", "quorum", nil)
		p := w.policy("orders", "orders", 3, time.Second, 2*time.Second)
		w.ready(p)
		cases := map[string]struct {
			path string
			// because is the reason of the step that puts it back.
			because string
		}{
			"a tier":     {path("queues", w.vhost, "orders.retry.2.2s"), "queue orders.retry.2.2s is missing"},
			"a binding":  {path("bindings", w.vhost, "e", "orders.retry.park", "q", "orders.parked", "~"), "binding orders.retry.park -> orders.parked is missing"},
			"the policy": {path("policies", w.vhost, ourPolicy(p)), "policy " + ourPolicy(p) + " is missing"},
		}
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				w.mgmt.must(t, http.MethodDelete, c.path, nil)
				w.Eventually(func() []string { return w.events(p) }).Should(ContainElement(SatisfyAll(
					HavePrefix("Normal TopologyApplied: Applied: "), ContainSubstring(c.because))), func() string { return w.describe(p) })
				w.Expect(w.logged("Applied step", c.because)).To(BeTrue(), "the log does not say it")
				w.eventually(p, v1alpha1.ConditionReady, "True", v1alpha1.ReasonRetriesActive)
			})
		}
	})
}

// logged reports whether a line of the operator's log about this vhost has all the texts.
func (w *world) logged(texts ...string) bool {
	texts = append(texts, `"vhost": "`+w.vhost+`"`)
	for line := range strings.Lines(logs.String()) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			return true
		}
	}
	return false
}

// inventory is all that is on the vhost, without what changes by itself.
func (w *world) inventory() []string {
	var out []string
	for _, kind := range []string{"exchanges", "queues", "policies"} {
		for _, o := range w.mgmt.list(w.t, path(kind, w.vhost)) {
			out = append(out, named(kind, o)+text(o["arguments"])+text(o["definition"])+text(o["type"])+
				text(o["pattern"])+text(o["apply-to"])+text(o["priority"]))
		}
	}
	for _, b := range w.mgmt.list(w.t, path("bindings", w.vhost)) {
		out = append(out, text(b["source"])+text(b["destination"])+text(b["arguments"]))
	}
	return sorted(out)
}

// reasons collects what the conditions have said, from a watch that sees every change.
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
	return slices.Clone(r.all)
}

func (r *reasons) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.messages, "\n")
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
	for _, c := range p.Status.Conditions {
		text := c.Type + " " + string(c.Status) + " " + c.Reason
		r.all = append(r.all, text)
		r.messages = append(r.messages, text+": "+c.Message)
	}
}
