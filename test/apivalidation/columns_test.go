/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package apivalidation

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
)

// asTable asks for what kubectl get prints.
const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io"

// column is a printer column and what stands in its one row.
type column struct {
	name  string
	wide  bool
	value any
}

func TestRetryPolicyColumns(t *testing.T) {
	g := NewWithT(t)
	namespace := newNamespace(t)

	policy := fullPolicy(namespace)
	status := policy.Status
	g.Expect(server.Create(t.Context(), policy)).To(Succeed())

	policy.Status = status
	g.Expect(server.Status().Update(t.Context(), policy)).To(Succeed())

	g.Expect(columns(t, "retrypolicies", namespace)).To(Equal([]column{
		{name: "Name", value: "orders"},
		{name: "Queue", value: "orders"},
		{name: "Strategy", value: "Ladder"},
		{name: "Attempts", value: int64(4)},
		{name: "Retrying", value: int64(0)},
		{name: "Parked", value: int64(7)},
		{name: "Ready", value: "True"},
		{name: "Reason", value: "RetriesActive"},
		{name: "Age", value: "some time"},
		{name: "Vhost", value: "shop", wide: true},
		{name: "Parking Lot", value: "orders.parked", wide: true},
	}))
}

func TestRetryPolicyColumnsOfUnknownCounts(t *testing.T) {
	g := NewWithT(t)
	namespace := newNamespace(t)

	policy := fullPolicy(namespace)
	status := policy.Status
	g.Expect(server.Create(t.Context(), policy)).To(Succeed())

	status.Retrying, status.Parked.Messages = nil, nil
	policy.Status = status
	g.Expect(server.Status().Update(t.Context(), policy)).To(Succeed())

	g.Expect(columns(t, "retrypolicies", namespace)).To(ContainElements(
		column{name: "Retrying", value: nil},
		column{name: "Parked", value: nil},
	))
}

func TestBrokerConnectionColumns(t *testing.T) {
	g := NewWithT(t)
	namespace := newNamespace(t)

	connection := &v1alpha1.BrokerConnection{
		ObjectMeta: metav1.ObjectMeta{Name: "main", Namespace: namespace},
		Spec: v1alpha1.BrokerConnectionSpec{
			ManagementURL:        "http://rabbitmq:15672",
			CredentialsSecretRef: v1alpha1.SecretReference{Name: "broker"},
		},
	}
	g.Expect(server.Create(t.Context(), connection)).To(Succeed())

	connection.Status = v1alpha1.BrokerConnectionStatus{
		Conditions: []metav1.Condition{condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonConnected)},
		Version:    "4.0.5",
	}
	g.Expect(server.Status().Update(t.Context(), connection)).To(Succeed())

	g.Expect(columns(t, "brokerconnections", namespace)).To(Equal([]column{
		{name: "Name", value: "main"},
		{name: "URL", value: "http://rabbitmq:15672"},
		{name: "Version", value: "4.0.5"},
		{name: "Ready", value: "True"},
		{name: "Reason", value: "Connected"},
		{name: "Age", value: "some time"},
	}))
}

// columns returns what kubectl get -o wide prints of the one object in the namespace.
func columns(t *testing.T, resource, namespace string) []column {
	t.Helper()
	g := NewWithT(t)

	c := rest.CopyConfig(config)
	c.GroupVersion = &v1alpha1.GroupVersion
	c.APIPath = "/apis"
	c.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	reader, err := rest.RESTClientFor(c)
	g.Expect(err).NotTo(HaveOccurred())

	table := &metav1.Table{}
	g.Expect(reader.Get().Namespace(namespace).Resource(resource).SetHeader("Accept", asTable).
		Do(t.Context()).Into(table)).To(Succeed())
	g.Expect(table.Rows).To(HaveLen(1))

	printed := make([]column, 0, len(table.ColumnDefinitions))

	for i, definition := range table.ColumnDefinitions {
		c := column{name: definition.Name, wide: definition.Priority > 0, value: table.Rows[0].Cells[i]}
		if c.name == "Age" && c.value != "" && c.value != nil {
			c.value = "some time"
		}

		printed = append(printed, c)
	}

	return printed
}

// newNamespace makes a namespace for one test, since an API server alone never
// finishes deleting one.
func newNamespace(t *testing.T) string {
	t.Helper()

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	NewWithT(t).Expect(server.Create(t.Context(), namespace)).To(Succeed())

	return namespace.Name
}

func condition(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: "It is so.", LastTransitionTime: metav1.Now(), ObservedGeneration: 1,
	}
}
