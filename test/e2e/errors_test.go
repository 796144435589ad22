/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package e2e

import (
	"context"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

// odd holds what breaks naive URLs and headers.
const odd = "p@ss:w%rd/\n?#é"

func TestWhatIsWrongIsSaidAndNoSecretIsShown(t *testing.T) {
	t.Parallel()
	eachBroker(t, func(t *testing.T, version string) {
		w := newWorld(t, version)
		w.declare("orders", "quorum", nil)
		user := func(suffix, tags, permissions string) string {
			name := w.vhost + suffix
			w.mgmt.addUser(t, name, odd, tags, w.vhost, permissions)
			return name
		}
		full := user("-full", "policymaker", ".*")
		w.connect("wrong-password", w.broker.ManagementURL, full, odd+"x")
		w.connect("no-policymaker", w.broker.ManagementURL, user("-mgmt", "management", ".*"), odd)
		w.connect("no-tag", w.broker.ManagementURL, user("-none", "", ".*"), odd)
		w.connect("no-configure", w.broker.ManagementURL, user("-conf", "policymaker", "^nothing$"), odd)
		w.connect("no-vhost", w.broker.ManagementURL, user("-novh", "policymaker", ""), odd)
		w.connect("nobody-there", "http://127.0.0.1:1", full, odd)
		w.connect("odd-but-right", w.broker.ManagementURL, full, odd)
		old := w.newProxy()
		old.version = "3.13.1"
		w.connect("old", old.URL, full, odd)

		cases := map[string]struct {
			connection string
			change     func(*v1alpha1.RetryPolicy)
			status     metav1.ConditionStatus
			reason     string
			message    string
			// event is what one of the policy's events matches, where there was a step to fail.
			event string
		}{
			"a wrong password":           {"wrong-password", nil, "False", v1alpha1.ReasonAuthenticationFailed, "", ""},
			"no policymaker tag":         {"no-policymaker", nil, "False", v1alpha1.ReasonPermissionDenied, "policymaker", `^Warning ApplyFailed: Could not write policy retry-operator\..*lacks the tag policymaker`},
			"no tag at all":              {"no-tag", nil, "False", v1alpha1.ReasonPermissionDenied, "tag", ""},
			"no right to configure":      {"no-configure", nil, "False", v1alpha1.ReasonPermissionDenied, "configure", `^Warning ApplyFailed: Could not declare exchange .*configure`},
			"no right on the vhost":      {"no-vhost", nil, "False", v1alpha1.ReasonPermissionDenied, w.vhost, ""},
			"a broker that is not there": {"nobody-there", nil, "Unknown", v1alpha1.ReasonBrokerUnreachable, "127.0.0.1:1", ""},
			"a broker that is too old":   {"old", nil, "False", v1alpha1.ReasonUnsupportedBrokerVersion, "3.13.3", ""},
			"no such connection":         {"nobody", nil, "False", v1alpha1.ReasonBrokerConnectionNotFound, "nobody", ""},
			"an unknown vhost": {"main", func(p *v1alpha1.RetryPolicy) { p.Spec.Vhost = "nowhere" },
				"False", v1alpha1.ReasonVhostNotFound, "nowhere", ""},
			"a missing target": {"main", func(p *v1alpha1.RetryPolicy) { p.Spec.Queue = "missing" },
				"False", v1alpha1.ReasonTargetQueueNotFound, "missing", ""},
		}
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				slug := slug(name)
				w.declare(slug, "quorum", nil)
				p := w.policy(slug, slug, 2, time.Second)
				p.Spec.BrokerRef.Name = c.connection
				if c.change != nil {
					c.change(p)
				}
				w.create(p)
				w.eventually(p, v1alpha1.ConditionTopologyReady, c.status, c.reason)
				w.eventually(p, v1alpha1.ConditionReady, c.status, c.reason)
				w.Expect(w.describe(p)).To(ContainSubstring(c.message))
				w.Expect(w.describe(p)).NotTo(ContainSubstring("p@ss"))
				if c.event != "" {
					w.Eventually(func() []string { return w.events(p) }).Should(ContainElement(MatchRegexp(c.event)))
				}
				w.Expect(k8s.Delete(t.Context(), p)).To(Succeed())
				w.gone(p)
			})
		}

		p := w.policy("fine", "orders", 2, time.Second)
		p.Spec.BrokerRef.Name = "odd-but-right"
		w.ready(p)
		shown := w.connectionStatuses()
		for _, secret := range []string{"p@ss", w.broker.Password, "p%40ss"} {
			w.Expect(logs.String()).NotTo(ContainSubstring(secret))
			w.Expect(shown).NotTo(ContainSubstring(secret))
		}
	})
}

func TestANewPasswordInTheSecretIsTakenUp(t *testing.T) {
	t.Parallel()
	eachBroker(t, func(t *testing.T, version string) {
		w := newWorld(t, version)
		w.declare("orders", "quorum", nil)
		user := w.vhost + "-user"
		w.mgmt.addUser(t, user, "first", "policymaker", w.vhost, ".*")
		w.connect("rotating", w.broker.ManagementURL, user, "first")
		p := w.policy("orders", "orders", 2, time.Second)
		p.Spec.BrokerRef.Name = "rotating"
		w.ready(p)

		w.mgmt.must(t, http.MethodPut, path("users", user), map[string]any{"password": odd, "tags": "policymaker"})
		w.eventually(p, v1alpha1.ConditionReady, "False", v1alpha1.ReasonAuthenticationFailed)

		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "rotating"}}
		w.Expect(k8s.Get(t.Context(), client.ObjectKeyFromObject(secret), secret)).To(Succeed())
		secret.Data["password"] = []byte(odd)
		w.Expect(k8s.Update(t.Context(), secret)).To(Succeed())
		w.eventually(p, v1alpha1.ConditionReady, "True", v1alpha1.ReasonRetriesActive)
	})
}

// TestABrokerThatGoesAway has a broker of its own.
func TestABrokerThatGoesAway(t *testing.T) {
	t.Parallel()
	if brokers[newest()].External() {
		t.Skip("a broker that is given can't be killed")
	}
	own, err := sandbox.StartBroker(t.Context(), t.Logf, newest())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() {
		if err := own.Stop(); err != nil {
			t.Errorf("stop the broker: %v", err)
		}
	})
	w := newWorldOn(t, own)
	w.declare("orders", "quorum", nil)
	w.declare("invoices", "quorum", nil)
	p, deleted := w.policy("orders", "orders", 3, 200*time.Millisecond), w.policy("invoices", "invoices", 3, 200*time.Millisecond)
	w.ready(p)
	w.ready(deleted)

	w.Expect(own.Kill()).To(Succeed())
	w.eventually(p, v1alpha1.ConditionReady, "Unknown", v1alpha1.ReasonBrokerUnreachable)
	w.eventually(p, v1alpha1.ConditionBindingsHealthy, "Unknown", v1alpha1.ReasonNotObserved)
	got := w.get(p).Status
	w.Expect(got.Retrying).To(BeNil(), "a count that nobody has seen")
	w.Expect(got.Parked.Messages).To(BeNil(), "a count that nobody has seen")

	t.Log("a policy that is deleted now waits for the broker, but not for ever")
	w.Expect(k8s.Delete(t.Context(), deleted)).To(Succeed())
	w.gone(deleted)
	w.Expect(w.events(deleted)).To(ContainElement(HavePrefix("Warning LeftBehind")))

	w.Expect(own.Start(t.Context())).To(Succeed())
	w.eventually(p, v1alpha1.ConditionReady, "True", v1alpha1.ReasonRetriesActive)
	published := w.publish("", 20, "orders")
	c := w.consume("orders", func(string, int) bool { return false })
	w.Eventually(c.count).Should(Equal(3 * len(published)))
	w.drain("orders.parked", len(published))
}

func TestAPolicyOnADeadAddressGoesWithinTheBoundedWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newest())
	w.connect("dead", "http://127.0.0.1:1", "nobody", "nothing")
	p := w.policy("orders", "orders", 2, time.Second)
	p.Spec.BrokerRef.Name = "dead"
	w.create(p)
	w.eventually(p, v1alpha1.ConditionTopologyReady, "Unknown", v1alpha1.ReasonBrokerUnreachable)
	w.Expect(k8s.Delete(context.WithoutCancel(t.Context()), p)).To(Succeed())
	w.gone(p)
}
