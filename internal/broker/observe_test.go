/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package broker

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/plan"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

func TestACountIsUnknownUntilTheBrokerHasCounted(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *sandbox.Broker) {
		g := NewWithT(t)
		vhost := newVhost(t, b, "counts")
		c := clientOf(t, adminConfig(b))
		state := func(name string) *topology.QueueState {
			s, err := c.Observe(t.Context(), vhost)
			g.Expect(err).NotTo(HaveOccurred())
			return s.Topology.Queues[name].State
		}
		for _, kind := range []string{topology.Classic, topology.Quorum, topology.Stream} {
			newQueue(t, b, vhost, kind, kind)
			g.Expect(state(kind).Messages).To(BeNil(), kind)
			g.Expect(state(kind).PendingDeadLetters).To(BeNil(), kind)
			publish(t, b, vhost, kind)
		}
		for _, kind := range []string{topology.Classic, topology.Quorum, topology.Stream} {
			g.Eventually(func() *int64 { return state(kind).Messages }, "30s", "500ms").Should(HaveValue(BeEquivalentTo(1)), kind)
		}
		g.Expect(state(topology.Quorum).PendingDeadLetters).To(HaveValue(BeEquivalentTo(0)))
		g.Expect(state(topology.Classic).PendingDeadLetters).To(BeNil())
	})
}

func TestPendingDeadLettersAreObserved(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *sandbox.Broker) {
		g := NewWithT(t)
		vhost := newVhost(t, b, "pending")
		c := clientOf(t, adminConfig(b))
		r := c.Apply(t.Context(), vhost, []plan.Step{{Action: plan.DeclareQueue, Queue: topology.Queue{
			Name: "q", Type: topology.Quorum, Durable: true, Arguments: topology.Args{
				"x-queue-type": topology.Quorum, "x-message-ttl": int64(1), "x-dead-letter-exchange": "missing",
				"x-dead-letter-strategy": topology.AtLeastOnce, "x-overflow": topology.RejectPublish,
			},
		}}})
		g.Expect(r.Err).NotTo(HaveOccurred())
		publish(t, b, vhost, "q")
		g.Eventually(func(g Gomega) {
			s, err := c.Observe(t.Context(), vhost)
			g.Expect(err).NotTo(HaveOccurred())
			state := s.Topology.Queues["q"].State
			g.Expect(state.PendingDeadLetters).To(HaveValue(BeEquivalentTo(1)))
			g.Expect(state.Messages).To(HaveValue(BeEquivalentTo(1)))
		}, "30s", "500ms").Should(Succeed())
	})
}

func publish(t *testing.T, b *sandbox.Broker, vhost, queue string) {
	t.Helper()
	admin(t, b, http.MethodPost, "exchanges/"+url.PathEscape(vhost)+"/amq.default/publish",
		object{"properties": object{"delivery_mode": 2}, "routing_key": queue, "payload": "x", "payload_encoding": "string"})
}

func TestOperatorPoliciesAreObserved(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *sandbox.Broker) {
		g := NewWithT(t)
		vhost := newVhost(t, b, "operator policies")
		admin(t, b, http.MethodPut, "operator-policies/"+url.PathEscape(vhost)+"/o", object{"pattern": "^q", "definition": object{"max-length": 7}, "priority": 3, "apply-to": "queues"})
		newQueue(t, b, vhost, "q", topology.Classic)
		c := clientOf(t, adminConfig(b))
		g.Eventually(func(g Gomega) {
			s, err := c.Observe(t.Context(), vhost)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(s.Topology.OperatorPolicies).To(Equal(map[string]topology.Policy{
				"o": {Name: "o", Pattern: "^q", ApplyTo: "queues", Priority: 3, Definition: topology.Args{"max-length": int64(7)}},
			}))
			g.Expect(s.Topology.Queues["q"].State.OperatorPolicy).To(Equal("o"))
			g.Expect(s.Topology.Queues["q"].State.Policy).To(BeEmpty())
		}, "30s", "500ms").Should(Succeed())
	})
}

func TestABrokerWithoutStatistics(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *sandbox.Broker) {
		g := NewWithT(t)
		vhost := newVhost(t, b, "no statistics")
		newQueue(t, b, vhost, "classic", topology.Classic)
		newQueue(t, b, vhost, "quorum", topology.Quorum)
		admin(t, b, http.MethodPut, "policies/"+url.PathEscape(vhost)+"/p", object{"pattern": ".*", "definition": object{"max-length": 7}})
		setStatistics := func(disabled bool) {
			_, err := b.Rabbitmqctl(t.Context(), "eval", "application:set_env(rabbitmq_management, disable_management_stats, "+strconv.FormatBool(disabled)+").")
			g.Expect(err).NotTo(HaveOccurred())
		}
		setStatistics(true)
		defer setStatistics(false)
		c := clientOf(t, adminConfig(b))
		s, err := c.Observe(t.Context(), vhost)
		g.Expect(err).NotTo(HaveOccurred())
		for _, kind := range []string{topology.Classic, topology.Quorum} {
			state := s.Topology.Queues[kind].State
			g.Expect(state.Messages).To(HaveValue(BeEquivalentTo(0)), kind)
			g.Expect(state.PendingDeadLetters).To(BeNil(), kind)
			g.Expect(state.Policy).To(Equal("p"), kind)
		}
	})
}

func TestObserveTakesSixRequestsOverOneConnection(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *sandbox.Broker) {
		g := NewWithT(t)
		vhost := newVhost(t, b, "behind/a proxy")
		p := newProxy(t, b, "/prefix/of%20a%2Fproxy")
		var mu sync.Mutex
		connections, methods := map[string]bool{}, map[string]bool{}
		p.interfere(func(_ http.ResponseWriter, r *http.Request) bool {
			mu.Lock()
			defer mu.Unlock()
			connections[r.RemoteAddr], methods[r.Method] = true, true
			return false
		})
		cfg := p.config(b)
		cfg.ManagementURL += "/prefix/of%20a%2Fproxy/"
		_, err := clientOf(t, cfg).Observe(t.Context(), vhost)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(p.requests.Load()).To(BeEquivalentTo(6))
		g.Expect(connections).To(HaveLen(1))
		g.Expect(methods).To(Equal(map[string]bool{http.MethodGet: true}))
	})
}

func TestAReusedConnectionThatTheBrokerClosesIsNoFailure(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *sandbox.Broker) {
		g := NewWithT(t)
		vhost := newVhost(t, b, "closed")
		newQueue(t, b, vhost, "q", topology.Classic)
		p := newProxy(t, b, "")
		var mu sync.Mutex
		used := map[string]bool{}
		p.interfere(func(w http.ResponseWriter, r *http.Request) bool {
			mu.Lock()
			defer mu.Unlock()
			if !used[r.RemoteAddr] {
				used[r.RemoteAddr] = true
				return false
			}
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				err = conn.Close() // every second request on a connection finds it closed
			}
			if err != nil {
				t.Error(err)
			}
			return true
		})
		c := clientOf(t, p.config(b))
		_, err := c.Observe(t.Context(), vhost)
		g.Expect(err).NotTo(HaveOccurred())
		r := c.Apply(t.Context(), vhost, []plan.Step{
			{Action: plan.DeclareExchange, Exchange: topology.Exchange{Name: "e", Type: topology.Fanout}},
			{Action: plan.Bind, Binding: topology.Binding{Source: "e", Destination: "q"}},
			{Action: plan.Unbind, Binding: topology.Binding{Source: "e", Destination: "q", PropertiesKey: "~"}},
			{Action: plan.DeleteExchange, Exchange: topology.Exchange{Name: "e"}},
		})
		g.Expect(r.Err).NotTo(HaveOccurred())
	})
}

func TestDecodingWhatRabbitMQWrites(t *testing.T) {
	g := NewWithT(t)
	var q queue
	g.Expect(json.Unmarshal([]byte(`{"name":"q","durable":"undefined","exclusive":null,"arguments":[],"policy":null,"messages":null,"messages_dlx":"undefined"}`), &q)).To(Succeed())
	g.Expect(q).To(Equal(queue{Name: "q", Policy: name{known: true}}))
	q = queue{}
	g.Expect(json.Unmarshal([]byte(`{"arguments":{"big":9007199254740993,"whole":10000.0,"part":1.5,"list":[1,{"a":2}],"table":{"n":3}},"messages":0}`), &q)).To(Succeed())
	g.Expect(q.Arguments).To(Equal(args{
		"big": int64(9007199254740993), "whole": int64(10000), "part": 1.5,
		"list": []any{int64(1), map[string]any{"a": int64(2)}}, "table": map[string]any{"n": int64(3)},
	}))
	g.Expect(q.Messages.n).To(HaveValue(BeEquivalentTo(0)))
	g.Expect(q.Policy.known).To(BeFalse())
}

// BenchmarkObserve looks at a vhost of 300 queues with as many exchanges, bindings and,
// for every tenth queue, a policy.
func BenchmarkObserve(b *testing.B) {
	brokers.start.Do(startBrokers)
	for _, v := range versions {
		b.Run("RabbitMQ "+v, func(b *testing.B) {
			if err := brokers.errs[v]; err != nil {
				b.Fatal(err)
			}
			on := brokers.all[v]
			vhost := newVhost(b, on, "benchmark")
			c := clientOf(b, adminConfig(on))
			w := topology.New()
			for i := range 300 {
				name, kind := "queue."+strconv.Itoa(i), topology.Classic
				if i%6 == 0 {
					kind = topology.Quorum
				}
				w.AddQueue(topology.Queue{Name: name, Type: kind, Durable: true, Arguments: topology.Args{"x-queue-type": kind, topology.ArgOwner: "installation/namespace/name"}})
				w.AddExchange(topology.Exchange{Name: name, Type: topology.Fanout, Durable: true})
				w.Bind(topology.Binding{Source: name, Destination: name})
				if i%10 == 0 {
					w.AddPolicy(topology.Policy{Name: name, Pattern: name + `\z`, ApplyTo: "queues", Definition: topology.Args{"max-length": int64(i)}})
				}
			}
			if r := c.Apply(b.Context(), vhost, stepsTo(w)); r.Err != nil {
				b.Fatal(r.Err)
			}
			for b.Loop() {
				if _, err := c.Observe(b.Context(), vhost); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
