/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package e2e

import (
	"encoding/json"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
)

// closed is an address where nothing listens.
const closed = "127.0.0.1:1"

func TestAConnectionSaysWhetherTheBrokerCanBeUsed(t *testing.T) {
	t.Parallel()
	eachBroker(t, func(t *testing.T, version string) {
		w := newWorld(t, version)
		user := w.vhost + "-user"
		w.mgmt.addUser(t, user, odd, "policymaker", w.vhost, ".*")
		management, amqp := w.broker.ManagementURL, "amqp://"+w.broker.AMQPAddress()

		cases := map[string]struct {
			management, amqp, password string
			status                     metav1.ConditionStatus
			reason                     string
			message                    string
			// answers is set when the management API has said who it is.
			answers bool
		}{
			"both addresses right":       {management, amqp, odd, "True", v1alpha1.ReasonConnected, "", true},
			"no AMQP address":            {management, "", odd, "True", v1alpha1.ReasonConnected, "", true},
			"a wrong password":           {management, amqp, odd + "x", "False", v1alpha1.ReasonAuthenticationFailed, user, false},
			"a broker that is not there": {"http://" + closed, amqp, odd, "Unknown", v1alpha1.ReasonBrokerUnreachable, closed, false},
			"a closed AMQP port":         {management, "amqp://" + closed, odd, "False", v1alpha1.ReasonAMQPUnreachable, closed, true},
		}
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				connection := w.connectOver(slug(name), c.management, c.amqp, user, c.password)
				w.connection(connection, c.status, c.reason)
				got := w.getConnection(connection)
				w.Expect(meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionReady).Message).To(ContainSubstring(c.message))
				if !c.answers {
					w.Expect(got.Status.Version).To(BeEmpty(), "a version that nobody has seen")
					w.Expect(got.Status.ClusterName).To(BeEmpty(), "a name that nobody has seen")
					return
				}
				w.Expect(got.Status.Version).To(HavePrefix(version + "."))
				overview, _ := w.mgmt.must(t, http.MethodGet, path("overview"), nil).(map[string]any)
				w.Expect(got.Status.ClusterName).To(Equal(overview["cluster_name"]))
				w.Expect(got.Status.LastObservedTime).NotTo(BeNil())
			})
		}
		w.Expect(w.connectionStatuses()).NotTo(ContainSubstring("p@ss"))
	})
}

// TestAnAMQPAddressThatRefusesThePassword leads to a broker that has no such user, while the
// management API's has.
func TestAnAMQPAddressThatRefusesThePassword(t *testing.T) {
	t.Parallel()
	if len(versions) == 1 {
		t.Skip("takes two brokers")
	}
	w, other := newWorld(t, versions[0]), newWorld(t, newest())
	user := w.vhost + "-user"
	w.mgmt.addUser(t, user, odd, "policymaker", w.vhost, ".*")
	connection := w.connectOver("refused", w.broker.ManagementURL, "amqp://"+other.broker.AMQPAddress(), user, odd)
	w.connection(connection, "False", v1alpha1.ReasonAuthenticationFailed)
	w.Expect(w.connectionStatuses()).NotTo(ContainSubstring("p@ss"))
}

func TestAConnectionRecoversWhenItIsCorrected(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		amqp, password string
		status         metav1.ConditionStatus
		reason         string
		correct        func(w *world, connection *v1alpha1.BrokerConnection)
	}{
		"the password in the Secret": {"", odd + "x", "False", v1alpha1.ReasonAuthenticationFailed,
			func(w *world, connection *v1alpha1.BrokerConnection) {
				secret := &corev1.Secret{}
				w.Expect(k8s.Get(w.t.Context(), client.ObjectKeyFromObject(connection), secret)).To(Succeed())
				secret.Data["password"] = []byte(odd)
				w.Expect(k8s.Update(w.t.Context(), secret)).To(Succeed())
			}},
		"the AMQP address": {"amqp://" + closed, odd, "False", v1alpha1.ReasonAMQPUnreachable,
			func(w *world, connection *v1alpha1.BrokerConnection) {
				got := w.getConnection(connection)
				got.Spec.AMQPURL = "amqp://" + w.broker.AMQPAddress()
				w.Expect(k8s.Update(w.t.Context(), got)).To(Succeed())
			}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachBroker(t, func(t *testing.T, version string) {
				w := newWorld(t, version)
				user := w.vhost + "-user"
				w.mgmt.addUser(t, user, odd, "policymaker", w.vhost, ".*")
				connection := w.connectOver("corrected", w.broker.ManagementURL, c.amqp, user, c.password)
				w.connection(connection, c.status, c.reason)
				c.correct(w, connection)
				w.connection(connection, "True", v1alpha1.ReasonConnected)
			})
		})
	}
}

// connection waits until a connection's Ready has a status and a reason.
func (w *world) connection(c *v1alpha1.BrokerConnection, status metav1.ConditionStatus, reason string) {
	w.t.Helper()
	w.Eventually(func() string {
		got := w.getConnection(c)
		ready := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.ObservedGeneration != got.Generation {
			return "no condition of this generation"
		}
		return string(ready.Status) + " " + ready.Reason
	}).Should(Equal(string(status)+" "+reason), w.connectionStatuses)
}

func (w *world) getConnection(c *v1alpha1.BrokerConnection) *v1alpha1.BrokerConnection {
	w.t.Helper()
	got := &v1alpha1.BrokerConnection{}
	w.Expect(k8s.Get(w.t.Context(), client.ObjectKeyFromObject(c), got)).To(Succeed())
	return got
}

// connectionStatuses waits until every connection of the namespace has been judged, and
// returns all that is said of them.
func (w *world) connectionStatuses() string {
	w.t.Helper()
	list := &v1alpha1.BrokerConnectionList{}
	w.Eventually(func(g Gomega) {
		g.Expect(k8s.List(w.t.Context(), list, client.InNamespace(w.namespace))).To(Succeed())
		for _, c := range list.Items {
			g.Expect(c.Status.Conditions).NotTo(BeEmpty(), c.Name)
		}
	}).Should(Succeed())
	out, err := json.Marshal(list.Items)
	w.Expect(err).NotTo(HaveOccurred())
	return string(out)
}
