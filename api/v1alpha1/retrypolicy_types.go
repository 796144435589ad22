/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Strategy says how the attempts of a message are counted, and so what a consumer must do.
//
// +kubebuilder:validation:Enum=Ladder
type Strategy string

// StrategyLadder lets the broker count: a consumer rejects a message without
// requeueing it, and the broker moves it from tier to tier and then parks it.
const StrategyLadder Strategy = "Ladder"

// QueueType is the type of the queues that the operator declares for a policy.
//
// +kubebuilder:validation:Enum=quorum;classic
type QueueType string

const (
	// QueueTypeQuorum is a replicated queue that can dead-letter without loss. It is the default.
	QueueTypeQuorum QueueType = "quorum"

	// QueueTypeClassic is a queue on one node. It can lose messages while it dead-letters them.
	QueueTypeClassic QueueType = "classic"
)

// DeletionPolicy says what becomes of a parking lot when its policy is deleted.
//
// +kubebuilder:validation:Enum=Retain;Delete
type DeletionPolicy string

const (
	// DeletionPolicyRetain keeps the parking lot, also when it is empty. It is the default.
	DeletionPolicyRetain DeletionPolicy = "Retain"

	// DeletionPolicyDelete deletes the parking lot once it is empty. It stays while it holds messages.
	DeletionPolicyDelete DeletionPolicy = "Delete"
)

// BrokerReference names a BrokerConnection in the namespace of the object that refers to it.
type BrokerReference struct {
	// name is the name of a BrokerConnection in the same namespace, 1 to 253 characters.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name,omitempty"`
}

// Tier is one wait between two attempts.
type Tier struct {
	// delay is how long a message waits before it returns to the queue: a
	// duration of at least 100ms and at most 168h (seven days), in whole
	// milliseconds, such as 500ms, 10s, 1m30s or 2h. There is no unit for
	// days: a day is 24h.
	//
	// The format is what a metav1.Duration decodes. A fraction is allowed in
	// seconds only, since that is how Go writes 1500ms. See
	// docs/adr/0002-durations.md.
	//
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]{1,3}h|[0-9]{1,5}m|[0-9]{1,6}(\.[0-9]{1,3})?s|[0-9]{1,9}ms)+$`
	// +kubebuilder:validation:XValidation:rule=`self.matches('^([0-9]{1,3}h|[0-9]{1,5}m|[0-9]{1,6}([.][0-9]{1,3})?s|[0-9]{1,9}ms)+$') && duration(self) >= duration('100ms') && duration(self) <= duration('168h')`,message="delay must be between 100ms and 168h, written like 500ms, 10s, 1m30s or 2h (a day is 24h)"
	// +required
	Delay metav1.Duration `json:"delay,omitzero"`
}

// Backoff says how long a message waits before each retry.
type Backoff struct {
	// tiers are the waits in the order in which a message passes them, 1 to 31.
	// The first tier follows the first failed attempt. With fewer tiers than
	// retries (maxAttempts - 1) the last delay repeats; more tiers than
	// retries are refused.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=31
	// +listType=atomic
	// +required
	Tiers []Tier `json:"tiers,omitempty"`
}

// ParkingLotAlert holds the thresholds from which on a parking lot counts as unhealthy.
type ParkingLotAlert struct {
	// messages is the number of parked messages, at least 1, from which on the
	// condition ParkingLotHealthy is False. Unset means that no number of
	// messages makes it so.
	//
	// +kubebuilder:validation:Minimum=1
	// +optional
	Messages int64 `json:"messages,omitempty"`
}

// ParkingLot describes the queue that keeps the messages whose last attempt failed.
type ParkingLot struct {
	// queueName is the name of the parking lot, 1 to 255 bytes, other than
	// the queue itself and without the prefix "amq.". Unset means the name of
	// the queue with ".parked" behind it.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="bytes(self).size() <= 255",message="parkingLot.queueName is too long: RabbitMQ takes at most 255 bytes, and a character can be several bytes"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:cntrl:]]') && self != '.' && self != '..'",message="parkingLot.queueName must have no control characters, such as a newline, and not be . or .., which the management API can't address: choose another name"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('amq.')",message="parkingLot.queueName must not begin with amq., which RabbitMQ keeps for itself: choose another name"
	// +optional
	QueueName string `json:"queueName,omitempty"`

	// alert holds the thresholds from which on the condition
	// ParkingLotHealthy is False. Unset means no threshold.
	//
	// +optional
	Alert ParkingLotAlert `json:"alert,omitzero"`
}

// RetryPolicySpec says which queue is retried, how often, and how long the waits are.
//
// +kubebuilder:validation:XValidation:rule="has(self.vhost) == has(oldSelf.vhost) && (!has(self.vhost) || self.vhost == oldSelf.vhost)",message="vhost cannot be changed, set or unset later: create another RetryPolicy for a queue in another vhost"
// +kubebuilder:validation:XValidation:rule="(has(self.strategy) ? self.strategy : 'Ladder') == (has(oldSelf.strategy) ? oldSelf.strategy : 'Ladder')",message="strategy cannot be changed, since it changes what consumers must do: create another RetryPolicy"
// +kubebuilder:validation:XValidation:rule="self.maxAttempts <= 1 || has(self.backoff)",message="backoff.tiers must give at least one delay when maxAttempts is more than 1"
// +kubebuilder:validation:XValidation:rule="!has(self.backoff) || self.backoff.tiers.size() < self.maxAttempts",message="more tiers than retries: give at most maxAttempts - 1 tiers (no backoff when maxAttempts is 1), or raise maxAttempts"
// +kubebuilder:validation:XValidation:rule="!has(self.parkingLot) || !has(self.parkingLot.queueName) || self.parkingLot.queueName != self.queue",message="parkingLot.queueName must differ from queue: parked messages would be delivered again"
type RetryPolicySpec struct {
	// brokerRef names the BrokerConnection, in the same namespace, of the
	// broker that has the queue. It cannot be changed: what was made on one
	// broker would be left behind.
	//
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="brokerRef cannot be changed, since what was made on that broker would be left behind: create another RetryPolicy"
	// +required
	BrokerRef BrokerReference `json:"brokerRef,omitzero"`

	// vhost is the virtual host of the queue, 1 to 255 bytes. Unset means the
	// defaultVhost of the BrokerConnection. It cannot be changed, set or
	// unset later, since the queue would be another one.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="bytes(self).size() <= 255",message="vhost is too long: RabbitMQ takes at most 255 bytes, and a character can be several bytes"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:cntrl:]]') && self != '.' && self != '..'",message="vhost must have no control characters, such as a newline, and not be . or .., which the management API can't address: choose another name"
	// +optional
	Vhost string `json:"vhost,omitempty"`

	// queue is the name of the queue whose failed messages are retried, 1 to
	// 255 bytes, without the prefix "amq.". It cannot be changed. The operator
	// never creates, changes or deletes this queue: it puts a policy on it
	// and binds it.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="bytes(self).size() <= 255",message="queue is too long: RabbitMQ takes at most 255 bytes, and a character can be several bytes"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[[:cntrl:]]') && self != '.' && self != '..'",message="queue must have no control characters, such as a newline, and not be . or .., which the management API can't address: choose another name"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('amq.')",message="queue must not begin with amq., which RabbitMQ keeps for itself: give the name of a queue of your own"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="queue cannot be changed: create another RetryPolicy for another queue"
	// +required
	Queue string `json:"queue,omitempty"`

	// strategy says who counts the attempts, and so what a consumer must do
	// (status.consumerContract says it in full). Ladder, which unset means:
	// the broker counts, a consumer rejects without requeueing. It cannot be
	// changed.
	//
	// +optional
	Strategy Strategy `json:"strategy,omitempty"`

	// maxAttempts is the number of deliveries of a message that may fail, the
	// first one included, 1 to 32. After that many the message is parked. 1
	// means no retry: a message is parked when it fails first.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=32
	// +required
	MaxAttempts int32 `json:"maxAttempts,omitempty"`

	// backoff says how long a message waits before each retry. It is required
	// when maxAttempts is more than 1, and must be unset when it is 1.
	//
	// +optional
	Backoff Backoff `json:"backoff,omitzero"`

	// parkingLot describes the queue that keeps the messages whose last
	// attempt failed. Unset means the default name and no alert.
	//
	// +optional
	ParkingLot ParkingLot `json:"parkingLot,omitzero"`

	// queueType is the type of the tiers and of the parking lot: quorum, which
	// unset means, or classic. Classic queues can lose messages on the way
	// between queues, which the condition DeadLetteringSafe then says.
	//
	// +optional
	QueueType QueueType `json:"queueType,omitempty"`

	// deletionPolicy says what becomes of the parking lot when the policy is
	// deleted: Retain, which unset means, keeps it; Delete deletes it if it is
	// empty. A parking lot that holds messages is never deleted.
	//
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// TierStatus is one tier as it is on the broker.
type TierStatus struct {
	// attempt is the number of the failed attempt, from 1, after which a
	// message waits in this tier.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31
	// +required
	Attempt int32 `json:"attempt,omitempty"`

	// delay is how long a message waits in this tier, a duration such as 1m30s.
	//
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +required
	Delay metav1.Duration `json:"delay,omitzero"`

	// queueName is the name of the tier's queue, 1 to 255 bytes.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +required
	QueueName string `json:"queueName,omitempty"`

	// messages is the number of messages that wait in this tier. Unset means
	// that the broker gave no number.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	Messages *int64 `json:"messages,omitempty"`
}

// ParkedStatus is the parking lot as it is on the broker.
type ParkedStatus struct {
	// queueName is the name of the parking lot, 1 to 255 bytes.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +required
	QueueName string `json:"queueName,omitempty"`

	// messages is the number of parked messages. Unset means that the broker
	// gave no number.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	Messages *int64 `json:"messages,omitempty"`
}

// RetryPolicyStatus is what was last observed on the broker.
type RetryPolicyStatus struct {
	// conditions say whether the retries work (Ready), and what each part of
	// that answer is: TopologyReady, BindingsHealthy, DeadLetteringSafe and
	// ParkingLotHealthy. At most 8.
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

	// strategy is the strategy in force.
	//
	// +optional
	Strategy Strategy `json:"strategy,omitempty"`

	// vhost is the virtual host in use: spec.vhost, or else the defaultVhost
	// of the BrokerConnection. 1 to 255 bytes.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Vhost string `json:"vhost,omitempty"`

	// consumerContract says what a consumer must do when it fails, in at most
	// 2048 characters.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	ConsumerContract string `json:"consumerContract,omitempty"`

	// brokerVersion is the version that the broker gives, such as 4.0.5, in at
	// most 128 characters.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	BrokerVersion string `json:"brokerVersion,omitempty"`

	// tiers are the waits, one for each retry, at most 31.
	//
	// +kubebuilder:validation:MaxItems=31
	// +listType=map
	// +listMapKey=attempt
	// +optional
	Tiers []TierStatus `json:"tiers,omitempty"`

	// parked is the parking lot.
	//
	// +optional
	Parked ParkedStatus `json:"parked,omitzero"`

	// retrying is the number of messages in all tiers. Unset means that the
	// number of at least one tier is unknown.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	Retrying *int64 `json:"retrying,omitempty"`

	// lastObservedTime is when the broker was last observed for this policy.
	// It is not renewed more often than once a minute unless something else
	// in the status changes.
	//
	// +optional
	LastObservedTime *metav1.Time `json:"lastObservedTime,omitempty"`
}

// RetryPolicy makes RabbitMQ retry the messages of one queue that its consumers
// reject, with growing waits, and park those that fail for good.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=rabbitmq
// +kubebuilder:printcolumn:name="Queue",type=string,JSONPath=`.spec.queue`
// +kubebuilder:printcolumn:name="Strategy",type=string,JSONPath=`.status.strategy`
// +kubebuilder:printcolumn:name="Attempts",type=integer,JSONPath=`.spec.maxAttempts`
// +kubebuilder:printcolumn:name="Retrying",type=integer,JSONPath=`.status.retrying`
// +kubebuilder:printcolumn:name="Parked",type=integer,JSONPath=`.status.parked.messages`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Vhost",type=string,priority=1,JSONPath=`.status.vhost`
// +kubebuilder:printcolumn:name="Parking Lot",type=string,priority=1,JSONPath=`.status.parked.queueName`
type RetryPolicy struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard metadata of an object.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says which queue is retried, how often, and how long the waits are.
	//
	// +required
	Spec RetryPolicySpec `json:"spec,omitzero"`

	// status is what was last observed on the broker.
	//
	// +optional
	Status RetryPolicyStatus `json:"status,omitzero"`
}

// RetryPolicyList is a list of RetryPolicies.
//
// +kubebuilder:object:root=true
type RetryPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	// items are the RetryPolicies.
	Items []RetryPolicy `json:"items"`
}

// EffectiveVhost returns the virtual host of the queue, given the one that the
// BrokerConnection defaults to.
func (s *RetryPolicySpec) EffectiveVhost(connectionDefault string) string {
	if s.Vhost != "" {
		return s.Vhost
	}

	return connectionDefault
}

// EffectiveStrategy returns the strategy, which is Ladder when the spec names none.
func (s *RetryPolicySpec) EffectiveStrategy() Strategy {
	if s.Strategy != "" {
		return s.Strategy
	}

	return StrategyLadder
}

// EffectiveQueueType returns the type of the tiers and of the parking lot,
// which is quorum when the spec names none.
func (s *RetryPolicySpec) EffectiveQueueType() QueueType {
	if s.QueueType != "" {
		return s.QueueType
	}

	return QueueTypeQuorum
}

// EffectiveDeletionPolicy returns what becomes of the parking lot when the
// policy is deleted, which is Retain when the spec says nothing.
func (s *RetryPolicySpec) EffectiveDeletionPolicy() DeletionPolicy {
	if s.DeletionPolicy != "" {
		return s.DeletionPolicy
	}

	return DeletionPolicyRetain
}
