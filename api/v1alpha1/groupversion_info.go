/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

// Package v1alpha1 holds the kinds of the group rabbitmq.retry-operator.io:
// RetryPolicy, the retries of one RabbitMQ queue, and BrokerConnection, the way
// to a broker.
//
// The package depends on apimachinery alone, so that others can import it
// without importing the operator.
//
// +kubebuilder:object:generate=true
// +groupName=rabbitmq.retry-operator.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of the kinds in this package.
	GroupVersion = schema.GroupVersion{Group: "rabbitmq.retry-operator.io", Version: "v1alpha1"}

	// SchemeBuilder collects the functions that add the kinds of this package to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds the kinds of this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// addKnownTypes registers every kind of this package, with its list.
func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&RetryPolicy{},
		&RetryPolicyList{},
		&BrokerConnection{},
		&BrokerConnectionList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)

	return nil
}
