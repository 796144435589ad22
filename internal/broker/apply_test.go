/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package broker

import (
	"regexp"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/plan"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

// oddNames are legal in RabbitMQ and easy to get wrong in a path or a query.
var oddNames = []string{"plain", "a/b", "50%", "%2F", "#1", "what?", "a b", "ünïcode-日本", "a+b;c=d&e@f:g", "..dots"}

func TestWhatIsAppliedIsObserved(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *sandbox.Broker) {
		for _, vhost := range []string{"/", "/team", "a/b", "%2F", "a b", "ünïcode?#&+"} {
			t.Run("vhost "+vhost, func(t *testing.T) {
				g := NewWithT(t)
				newVhost(t, b, vhost)
				c := clientOf(t, adminConfig(b))
				before, err := c.Observe(t.Context(), vhost)
				g.Expect(err).NotTo(HaveOccurred())

				wanted := everyKindOfObject()
				steps := stepsTo(wanted)
				for range 2 { // the second time all of it is there
					r := c.Apply(t.Context(), vhost, steps)
					g.Expect(r.Err).NotTo(HaveOccurred())
					g.Expect(r.Failed).To(BeNil())
					g.Expect(r.Applied).To(Equal(steps))
					expectObserved(t, g, c, vhost, wanted)
				}

				var s Snapshot
				g.Eventually(func(g Gomega) { // the policy in effect is a statistic, up to 10 s old
					s, err = c.Observe(t.Context(), vhost)
					g.Expect(err).NotTo(HaveOccurred())
					for name := range wanted.Policies {
						g.Expect(s.Topology.Queues[name].State.Policy).To(Equal(name))
					}
				}, "30s", "500ms").Should(Succeed())
				down := stepsFrom(s.Topology, wanted)
				for range 2 { // the second time all of it is gone
					r := c.Apply(t.Context(), vhost, down)
					g.Expect(r.Err).NotTo(HaveOccurred())
					g.Expect(r.Applied).To(HaveLen(len(down)))
				}
				after, err := c.Observe(t.Context(), vhost)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(after.Topology).To(Equal(before.Topology))
			})
		}
	})
}

// everyKindOfObject has every kind of object, under every odd name.
func everyKindOfObject() topology.Topology {
	w := topology.New()
	for i, name := range oddNames {
		w.AddQueue(topology.Queue{Name: name, Type: topology.Classic, Durable: true, Arguments: topology.Args{
			"x-queue-type": topology.Classic, "x-message-ttl": int64(10000 + i), topology.ArgOwner: "i/ns/" + name,
		}})
		w.AddExchange(topology.Exchange{Name: name, Type: topology.Headers, Durable: true, Internal: true, Arguments: topology.Args{
			topology.KeyAlternateExchange: "amq.fanout", topology.ArgAttempt: int64(i),
		}})
		w.Bind(topology.Binding{Source: name, Destination: name, Arguments: topology.Args{
			"x-match": "all-with-x", "x-last-death-exchange": name, "n": int64(i), "f": 1.5, "yes": true,
		}})
		w.Bind(topology.Binding{Source: name, Destination: name, Arguments: topology.Args{"x-match": "any", "n": int64(i)}})
		w.Bind(topology.Binding{Source: "amq.topic", Destination: name, RoutingKey: name + ".#"})
		w.Bind(topology.Binding{Source: "amq.direct", Destination: name, ToExchange: true, RoutingKey: name})
		w.AddPolicy(topology.Policy{
			Name: name, Pattern: "^" + regexp.QuoteMeta(name) + `\z`, ApplyTo: "classic_queues", Priority: int64(100 + i),
			Definition: topology.Args{topology.KeyDeadLetterExchange: name, topology.KeyMaxLength: int64(1 << 40)},
		})
	}
	w.AddQueue(topology.Queue{Name: "quorum", Type: topology.Quorum, Durable: true, Arguments: topology.Args{
		"x-queue-type": topology.Quorum, "x-delivery-limit": int64(-1), "x-dead-letter-exchange": "", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
	}})
	w.AddExchange(topology.Exchange{Name: "fan", Type: topology.Fanout, Durable: true})
	w.AddExchange(topology.Exchange{Name: "passing", Type: topology.Fanout, Durable: true, AutoDelete: true})
	w.Bind(topology.Binding{Source: "fan", Destination: "quorum"})
	return w
}

func stepsTo(w topology.Topology) []plan.Step {
	var steps []plan.Step
	for _, q := range topology.Sorted(w.Queues) {
		steps = append(steps, plan.Step{Action: plan.DeclareQueue, Queue: q})
	}
	for _, e := range topology.Sorted(w.Exchanges) {
		steps = append(steps, plan.Step{Action: plan.DeclareExchange, Exchange: e})
	}
	for _, b := range w.SortedBindings() {
		steps = append(steps, plan.Step{Action: plan.Bind, Binding: b})
	}
	for _, p := range topology.Sorted(w.Policies) {
		steps = append(steps, plan.Step{Action: plan.PutPolicy, Policy: p})
	}
	return steps
}

// stepsFrom takes down what is observed of the wanted, bindings by the broker's key.
func stepsFrom(observed, w topology.Topology) []plan.Step {
	var steps []plan.Step
	for _, b := range observed.SortedBindings() {
		if w.Bound(b) {
			steps = append(steps, plan.Step{Action: plan.Unbind, Binding: b})
		}
	}
	for _, p := range topology.Sorted(w.Policies) {
		steps = append(steps, plan.Step{Action: plan.DeletePolicy, Policy: p})
	}
	for _, e := range topology.Sorted(w.Exchanges) {
		steps = append(steps, plan.Step{Action: plan.DeleteExchange, Exchange: e})
	}
	for _, q := range topology.Sorted(w.Queues) {
		steps = append(steps, plan.Step{Action: plan.DeleteQueue, Queue: q})
	}
	return steps
}

func expectObserved(t *testing.T, g *WithT, c *Client, vhost string, w topology.Topology) {
	t.Helper()
	s, err := c.Observe(t.Context(), vhost)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Version).To(HavePrefix("4."))
	g.Expect(s.ClusterName).NotTo(BeEmpty())
	g.Expect(s.Topology.Policies).To(Equal(w.Policies))
	g.Expect(s.Topology.Queues).To(HaveLen(len(w.Queues)))
	for name, want := range w.Queues {
		have := s.Topology.Queues[name]
		g.Expect(have.State).NotTo(BeNil())
		g.Expect(have.State.Status).To(Equal("running"))
		have.State = nil
		g.Expect(have).To(Equal(want))
	}
	for name, want := range w.Exchanges {
		g.Expect(s.Topology.Exchanges).To(HaveKeyWithValue(name, want))
	}
	bindings := 0
	for _, have := range s.Topology.SortedBindings() {
		g.Expect(w.Bound(have)).To(BeTrue(), "%+v", have)
		bindings++
	}
	g.Expect(bindings).To(Equal(len(w.SortedBindings())))
}

func TestApplyStopsAtTheFirstFailure(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *sandbox.Broker) {
		g := NewWithT(t)
		vhost := newVhost(t, b, "stops")
		newQueue(t, b, vhost, "q", topology.Classic)
		c := clientOf(t, adminConfig(b))
		other := topology.Queue{Name: "q", Type: topology.Quorum, Durable: true, Arguments: topology.Args{"x-queue-type": topology.Quorum}}
		steps := []plan.Step{
			{Action: plan.DeclareExchange, Exchange: topology.Exchange{Name: "first", Type: topology.Fanout, Durable: true}},
			{Action: plan.DeclareQueue, Queue: other},
			{Action: plan.DeclareExchange, Exchange: topology.Exchange{Name: "last", Type: topology.Fanout, Durable: true}},
		}
		r := c.Apply(t.Context(), vhost, steps)
		g.Expect(r.Applied).To(Equal(steps[:1]))
		g.Expect(*r.Failed).To(Equal(steps[1]))
		g.Expect(ClassOf(r.Err)).To(Equal(Rejected))
		g.Expect(r.Err.Error()).To(SatisfyAll(ContainSubstring("declare queue q"), ContainSubstring("inequivalent arg"), ContainSubstring(c.host)))

		s, err := c.Observe(t.Context(), vhost)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.Topology.Exchanges).To(HaveKey("first"))
		g.Expect(s.Topology.Exchanges).NotTo(HaveKey("last"))
		g.Expect(other.Arguments).To(HaveLen(1))

		r = c.Apply(t.Context(), vhost, []plan.Step{{Action: plan.Bind, Binding: topology.Binding{Source: "first", Destination: "nowhere"}}})
		g.Expect(ClassOf(r.Err)).To(Equal(Rejected))
		g.Expect(r.Err.Error()).To(ContainSubstring("no queue 'nowhere'"))
	})
}

func TestNamesThatLeadAPathAstrayAreRefused(t *testing.T) {
	g := NewWithT(t)
	c := clientOf(t, Config{ManagementURL: "http://127.0.0.1:1"})
	for _, bad := range []string{"", ".", ".."} {
		for _, s := range []plan.Step{
			{Action: plan.DeleteQueue, Queue: topology.Queue{Name: bad}},
			{Action: plan.DeleteExchange, Exchange: topology.Exchange{Name: bad}},
			{Action: plan.DeletePolicy, Policy: topology.Policy{Name: bad}},
			{Action: plan.Bind, Binding: topology.Binding{Source: "e", Destination: bad}},
			{Action: plan.Unbind, Binding: topology.Binding{Source: "e", Destination: "q", PropertiesKey: bad}},
		} {
			g.Expect(ClassOf(c.Apply(t.Context(), "v", []plan.Step{s}).Err)).To(Equal(Rejected))
		}
		_, err := c.Observe(t.Context(), bad)
		g.Expect(ClassOf(err)).To(Equal(VhostNotFound))
	}
}
