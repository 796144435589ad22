/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	amqp "github.com/rabbitmq/amqp091-go"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

// world is a namespace of its own, with a connection to a vhost of its own.
type world struct {
	*WithT
	t         *testing.T
	broker    *sandbox.Broker
	mgmt      management
	namespace string
	vhost     string
}

var worlds atomic.Int64

func newWorld(t *testing.T, version string) *world {
	t.Helper()
	return newWorldOn(t, brokers[version])
}

func newWorldOn(t *testing.T, broker *sandbox.Broker) *world {
	t.Helper()
	name := fmt.Sprintf("e2e-%d", worlds.Add(1))
	w := &world{WithT: NewWithT(t), t: t, broker: broker, mgmt: managementOf(broker), namespace: name, vhost: name}
	w.SetDefaultEventuallyTimeout(patience)
	w.SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	w.mgmt.must(t, http.MethodPut, path("vhosts", w.vhost), nil)
	w.mgmt.grant(t, w.vhost, w.broker.Username, ".*")
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	w.connect("main", w.broker.ManagementURL, w.broker.Username, w.broker.Password)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = k8s.DeleteAllOf(ctx, &v1alpha1.RetryPolicy{}, client.InNamespace(name))
		_, _, _ = w.mgmt.do(ctx, http.MethodDelete, path("vhosts", w.vhost), nil)
	})
	return w
}

func (w *world) create(o client.Object) {
	w.t.Helper()
	w.Expect(k8s.Create(w.t.Context(), o)).To(Succeed())
}

// connect makes a BrokerConnection and its Secret.
func (w *world) connect(name, managementURL, username, password string) {
	w.t.Helper()
	w.connectOver(name, managementURL, "", username, password)
}

// connectOver makes a connection with an AMQP address besides; "" is none.
func (w *world) connectOver(name, managementURL, amqpURL, username, password string) *v1alpha1.BrokerConnection {
	w.t.Helper()
	w.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		StringData: map[string]string{"username": username, "password": password},
	})
	connection := &v1alpha1.BrokerConnection{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: v1alpha1.BrokerConnectionSpec{
			ManagementURL:        managementURL,
			AMQPURL:              amqpURL,
			CredentialsSecretRef: v1alpha1.SecretReference{Name: name},
			DefaultVhost:         w.vhost,
		},
	}
	w.create(connection)
	return connection
}

// policy makes a RetryPolicy of the same name as its queue's first part.
func (w *world) policy(name, queue string, maxAttempts int32, delays ...time.Duration) *v1alpha1.RetryPolicy {
	p := &v1alpha1.RetryPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: v1alpha1.RetryPolicySpec{
			BrokerRef:   v1alpha1.BrokerReference{Name: "main"},
			Queue:       queue,
			MaxAttempts: maxAttempts,
		},
	}
	for _, d := range delays {
		p.Spec.Backoff.Tiers = append(p.Spec.Backoff.Tiers, v1alpha1.Tier{Delay: metav1.Duration{Duration: d}})
	}
	return p
}

// ready creates a policy and waits until its queue is served.
func (w *world) ready(p *v1alpha1.RetryPolicy) {
	w.t.Helper()
	w.create(p)
	w.eventually(p, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonRetriesActive)
}

// eventually waits until a condition of the policy has a status and a reason.
func (w *world) eventually(p *v1alpha1.RetryPolicy, kind string, status metav1.ConditionStatus, reason string) {
	w.t.Helper()
	w.Eventually(func() string { return w.conditionText(p, kind) }).
		Should(Equal(string(status)+" "+reason), func() string { return w.describe(p) })
}

func (w *world) conditionText(p *v1alpha1.RetryPolicy, kind string) string {
	got := w.get(p)
	if c := meta.FindStatusCondition(got.Status.Conditions, kind); c != nil && c.ObservedGeneration == got.Generation {
		return string(c.Status) + " " + c.Reason
	}
	return "no condition of this generation"
}

func (w *world) get(p *v1alpha1.RetryPolicy) *v1alpha1.RetryPolicy {
	got := &v1alpha1.RetryPolicy{}
	w.Expect(k8s.Get(w.t.Context(), client.ObjectKeyFromObject(p), got)).To(Succeed())
	return got
}

// describe is what kubectl describe would show, for a failing test.
func (w *world) describe(p *v1alpha1.RetryPolicy) string {
	var sb strings.Builder
	for _, c := range w.get(p).Status.Conditions {
		fmt.Fprintf(&sb, "%s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	for _, e := range w.events(p) {
		sb.WriteString("event: " + e + "\n")
	}
	return sb.String()
}

// events are the policy's events, as text.
func (w *world) events(p *v1alpha1.RetryPolicy) []string {
	list := &eventsv1.EventList{}
	w.Expect(k8s.List(w.t.Context(), list, client.InNamespace(w.namespace))).To(Succeed())
	var out []string
	for _, e := range list.Items {
		if e.Regarding.Name == p.Name {
			out = append(out, e.Type+" "+e.Reason+": "+e.Note)
		}
	}
	return out
}

// gone waits until the policy has been let go.
func (w *world) gone(p *v1alpha1.RetryPolicy) {
	w.t.Helper()
	w.Eventually(func() error {
		return client.IgnoreNotFound(k8s.Get(w.t.Context(), client.ObjectKeyFromObject(p), &v1alpha1.RetryPolicy{}))
	}).Should(Succeed())
	w.Eventually(func() bool {
		return k8s.Get(w.t.Context(), client.ObjectKeyFromObject(p), &v1alpha1.RetryPolicy{}) != nil
	}).Should(BeTrue(), func() string { return w.describe(p) })
}

// channel opens a connection of its own.
func (w *world) channel() *amqp.Channel {
	w.t.Helper()
	conn, err := amqp.Dial(w.broker.AMQPURL(w.vhost))
	w.Expect(err).NotTo(HaveOccurred())
	w.t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	w.Expect(err).NotTo(HaveOccurred())
	return ch
}

// declare makes a target queue.
func (w *world) declare(queue, queueType string, args amqp.Table) {
	w.t.Helper()
	all := amqp.Table{"x-queue-type": queueType}
	maps.Copy(all, args)
	_, err := w.channel().QueueDeclare(queue, true, false, false, false, all)
	w.Expect(err).NotTo(HaveOccurred())
}

// depths are all messages of every queue of the vhost as the broker counts them: ready,
// unacknowledged and pending. A queue whose count the broker does not give is -1.
func (w *world) depths() map[string]int {
	out := map[string]int{}
	for _, q := range w.mgmt.list(w.t, path("queues", w.vhost)) {
		name, _ := q["name"].(string)
		out[name] = -1
		if n, ok := q["messages"].(float64); ok {
			out[name] = int(n)
		}
	}
	return out
}

// eachBroker runs a test on every version, side by side.
func eachBroker(t *testing.T, test func(t *testing.T, version string)) {
	for _, v := range versions {
		t.Run("RabbitMQ "+v, func(t *testing.T) {
			t.Parallel()
			test(t, v)
		})
	}
}

// eachTarget runs a test on every version with a classic and with a quorum target.
func eachTarget(t *testing.T, test func(t *testing.T, w *world, queueType string)) {
	eachBroker(t, func(t *testing.T, version string) {
		for _, queueType := range []string{"classic", "quorum"} {
			t.Run(queueType, func(t *testing.T) {
				t.Parallel()
				test(t, newWorld(t, version), queueType)
			})
		}
	})
}
