/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DefaultVhost is the virtual host that a BrokerConnection without a
// defaultVhost uses: the one that every RabbitMQ broker starts with.
const DefaultVhost = "/"

const (
	// CredentialsUsernameKey is the key of the user name in the Secret that
	// credentialsSecretRef names.
	CredentialsUsernameKey = "username"

	// CredentialsPasswordKey is the key of the password in the Secret that
	// credentialsSecretRef names.
	CredentialsPasswordKey = "password"
)

// SecretReference names a Secret in the namespace of the object that refers to it.
type SecretReference struct {
	// name is the name of a Secret in the same namespace, 1 to 253 characters.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name,omitempty"`
}

// BrokerConnectionSpec says where a broker is and how to log in to it.
//
// +kubebuilder:validation:XValidation:rule="(has(self.defaultVhost) ? self.defaultVhost : '/') == (has(oldSelf.defaultVhost) ? oldSelf.defaultVhost : '/')",message="defaultVhost cannot be changed, since policies that name no vhost would move: create another BrokerConnection, or name the vhost in the policy"
type BrokerConnectionSpec struct {
	// managementURL is where the broker's management API is: an http or https
	// URL of at most 1024 characters, with a path prefix if the API has one,
	// such as https://rabbitmq.example.com:15671/prefix (without the "/api").
	// It contains no credentials, no query and no fragment.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != ''",message="managementURL must be an http or https URL with a host, such as https://rabbitmq.example.com:15671"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^/]*//[^/?#]*@')",message="managementURL must not contain credentials: put them into the Secret that credentialsSecretRef names"
	// +kubebuilder:validation:XValidation:rule="!self.contains('?') && !self.contains('#')",message="managementURL must have no query and no fragment: remove what follows the ? or #"
	// +required
	ManagementURL string `json:"managementURL,omitempty"`

	// amqpURL is where clients reach the broker over AMQP: an amqp or amqps URL
	// of at most 1024 characters, such as amqps://rabbitmq.example.com:5671.
	// It contains no credentials, no virtual host, no query and no fragment.
	// Where it is given, Ready says whether its port answers.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['amqp', 'amqps'] && url(self).getHostname() != ''",message="amqpURL must be an amqp or amqps URL with a host, such as amqps://rabbitmq.example.com:5671"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^/]*//[^/?#]*@')",message="amqpURL must not contain credentials: put them into the Secret that credentialsSecretRef names"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^/]*//[^/?#]*(/[^?#]|/?[?#])')",message="amqpURL must end after the port: give the virtual host as defaultVhost, and remove what follows a ? or #"
	// +optional
	AMQPURL string `json:"amqpURL,omitempty"`

	// credentialsSecretRef names the Secret, in the same namespace, whose keys
	// username and password the operator logs in with.
	//
	// +required
	CredentialsSecretRef SecretReference `json:"credentialsSecretRef,omitzero"`

	// defaultVhost is the virtual host of every RetryPolicy that names none, 1
	// to 255 bytes. Unset means "/". It cannot be changed: every such policy
	// would leave behind what was made for it.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="bytes(self).size() <= 255",message="defaultVhost is too long: RabbitMQ takes at most 255 bytes, and a character can be several bytes"
	// +optional
	DefaultVhost string `json:"defaultVhost,omitempty"`
}

// BrokerConnectionStatus is what the operator last saw of the broker.
type BrokerConnectionStatus struct {
	// conditions say whether the operator can work with the broker (Ready). At
	// most 8.
	//
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the metadata.generation that this status is about.
	//
	// +kubebuilder:validation:Minimum=1
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// version is the version that the broker gives, such as 4.0.5, in at most
	// 128 characters.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Version string `json:"version,omitempty"`

	// clusterName is the name that the broker's cluster gives itself, in at
	// most 512 characters.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	ClusterName string `json:"clusterName,omitempty"`

	// lastObservedTime is when the broker last answered. It is not renewed
	// more often than once a minute unless something else in the status
	// changes.
	//
	// +optional
	LastObservedTime *metav1.Time `json:"lastObservedTime,omitempty"`
}

// BrokerConnection is the way to one RabbitMQ broker.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=rabbitmq
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.spec.managementURL`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type BrokerConnection struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of an object.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says where the broker is and how to log in to it.
	//
	// +required
	Spec BrokerConnectionSpec `json:"spec,omitzero"`

	// status is what the operator last saw of the broker.
	//
	// +optional
	Status BrokerConnectionStatus `json:"status,omitzero"`
}

// BrokerConnectionList is a list of BrokerConnections.
//
// +kubebuilder:object:root=true
type BrokerConnectionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	// items are the BrokerConnections.
	Items []BrokerConnection `json:"items"`
}

// EffectiveDefaultVhost returns the virtual host of policies that name none,
// which is "/" when the spec names none either.
func (s *BrokerConnectionSpec) EffectiveDefaultVhost() string {
	if s.DefaultVhost != "" {
		return s.DefaultVhost
	}

	return DefaultVhost
}
