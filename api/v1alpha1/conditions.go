/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package v1alpha1

// The types of conditions. Every condition is set on the first visit, as
// Unknown if nothing is known yet.
const (
	// ConditionReady of a RetryPolicy is True when TopologyReady and
	// BindingsHealthy are: failed messages are retried and then parked. Else it
	// has the reason of the first that is not True. Parked messages do not
	// make it False: a parked message is the system working.
	//
	// ConditionReady of a BrokerConnection is True when the broker answers, lets the
	// operator in, and is of a version that works.
	ConditionReady = "Ready"

	// ConditionTopologyReady is True when everything that the policy declares
	// is on the broker as wanted.
	ConditionTopologyReady = "TopologyReady"

	// ConditionBindingsHealthy is True when every path that a message can take
	// exists, from the queue through the tiers to the parking lot, proved from
	// what was observed.
	ConditionBindingsHealthy = "BindingsHealthy"

	// ConditionDeadLetteringSafe is True when no hop between two queues can
	// lose a message.
	ConditionDeadLetteringSafe = "DeadLetteringSafe"

	// ConditionParkingLotHealthy is True when the parking lot is below every
	// threshold of parkingLot.alert.
	ConditionParkingLotHealthy = "ParkingLotHealthy"
)

// Reasons of conditions that are True.
const (
	// ReasonRetriesActive is the reason of Ready: failed messages are retried
	// and then parked. There is nothing to do.
	ReasonRetriesActive = "RetriesActive"

	// ReasonConnected is the reason of a BrokerConnection's Ready: the operator
	// can work with the broker. There is nothing to do.
	ReasonConnected = "Connected"

	// ReasonTopologyApplied is the reason of TopologyReady: everything declared
	// was seen on the broker as wanted. There is nothing to do.
	ReasonTopologyApplied = "TopologyApplied"

	// ReasonAllPathsProven is the reason of BindingsHealthy: every path was
	// walked through what was observed, and ended where it should. There is
	// nothing to do.
	ReasonAllPathsProven = "AllPathsProven"

	// ReasonNoLossPossible is the reason of DeadLetteringSafe: every hop waits
	// for the confirmation of the next queue. There is nothing to do.
	ReasonNoLossPossible = "NoLossPossible"

	// ReasonBelowThresholds is the reason of ParkingLotHealthy: the parking lot
	// is below every threshold, or none is set. There is nothing to do.
	ReasonBelowThresholds = "BelowThresholds"
)

// Reasons of conditions that are Unknown.
const (
	// ReasonNotObserved says that the broker was not observed yet, or can't be
	// observed now. Wait, or see why TopologyReady is not True.
	ReasonNotObserved = "NotObserved"

	// ReasonUnknownCount says that the broker gave no message count, as it does
	// for some seconds after a queue got its first message. Wait; if it stays,
	// look at the queue on the broker.
	ReasonUnknownCount = "UnknownCount"
)

// Reasons why TopologyReady, or a BrokerConnection's Ready, is not True.
const (
	// ReasonBrokerConnectionNotFound says that no BrokerConnection has the name
	// in brokerRef in the policy's namespace. Create it, or correct the name.
	ReasonBrokerConnectionNotFound = "BrokerConnectionNotFound"

	// ReasonCredentialsNotFound says that the Secret of credentialsSecretRef, or
	// its key username or password, is missing. Create the Secret with both keys.
	ReasonCredentialsNotFound = "CredentialsNotFound"

	// ReasonBrokerUnreachable says that the management API does not answer.
	// Start the broker, or correct managementURL or the network.
	ReasonBrokerUnreachable = "BrokerUnreachable"

	// ReasonAMQPUnreachable says that the port of amqpURL does not answer, while
	// the management API does. Correct amqpURL or the network.
	ReasonAMQPUnreachable = "AMQPUnreachable"

	// ReasonAuthenticationFailed says that the broker refuses the user name and
	// password. Correct the Secret of credentialsSecretRef.
	ReasonAuthenticationFailed = "AuthenticationFailed"

	// ReasonPermissionDenied says that the broker knows the user but does not
	// let it do what is needed. Give it the tag or the permissions that the
	// message names.
	ReasonPermissionDenied = "PermissionDenied"

	// ReasonBrokerError says that the broker answered with an error of its own, so that it
	// could not be observed. Read the message, and the broker's log.
	ReasonBrokerError = "BrokerError"

	// ReasonBrokerRefused says that the broker refused a change that it understood.
	// Read the message for the broker's own reason.
	ReasonBrokerRefused = "BrokerRefused"

	// ReasonUnsupportedBrokerVersion says that the broker is older than 3.13.3,
	// before which it can't tell the attempts apart. Upgrade the broker.
	ReasonUnsupportedBrokerVersion = "UnsupportedBrokerVersion"

	// ReasonVhostNotFound says that the virtual host is missing. Create it, or
	// name another in a new policy.
	ReasonVhostNotFound = "VhostNotFound"

	// ReasonTargetQueueNotFound says that the queue is missing. Everything else is
	// made; the queue is bound when it appears. Declare it, or name another
	// in a new policy.
	ReasonTargetQueueNotFound = "TargetQueueNotFound"

	// ReasonUnsupportedTargetType says that the queue is of a type that can't
	// dead-letter, such as a stream. Use a quorum or classic queue.
	ReasonUnsupportedTargetType = "UnsupportedTargetType"

	// ReasonQueueArgumentMismatch says that a queue or exchange has arguments
	// that can't be changed and stand in the way, such as a dead-letter
	// exchange given at declaration. Declare it anew without the argument that
	// the message names.
	ReasonQueueArgumentMismatch = "QueueArgumentMismatch"

	// ReasonNotOwned says that a queue or exchange with a name that the policy
	// needs exists and was made by someone else. It was not touched. Rename or
	// delete it, or choose another name.
	ReasonNotOwned = "NotOwned"

	// ReasonPolicyConflict says that another RabbitMQ policy for the queue sets a
	// key that the operator needs. It was not touched. Remove the key that the
	// message names from that policy.
	ReasonPolicyConflict = "PolicyConflict"

	// ReasonTargetClaimed says that an older RetryPolicy has the same queue.
	// Delete one of the two.
	ReasonTargetClaimed = "TargetClaimed"

	// ReasonApplying says that changes were just sent to the broker and wait to be
	// observed. Wait one poll interval.
	ReasonApplying = "Applying"

	// ReasonMigrating says that messages of an earlier form of the policy, or of
	// a policy that is being deleted, are still on their way, and that the
	// queues they pass stay until then. Wait.
	ReasonMigrating = "Migrating"
)

// Reasons why BindingsHealthy is not True.
const (
	// ReasonBindingMissing says that a binding is missing. The operator makes it
	// again; find out who removed it.
	ReasonBindingMissing = "BindingMissing"

	// ReasonExchangeMissing says that an exchange is missing. The operator makes
	// it again; find out who removed it.
	ReasonExchangeMissing = "ExchangeMissing"

	// ReasonRouteUnreachable says that a path does not end where it should although
	// its exchanges and bindings are there. The message names the path: remove
	// what leads messages elsewhere.
	ReasonRouteUnreachable = "RouteUnreachable"
)

// Reasons why DeadLetteringSafe is not True.
const (
	// ReasonClassicTarget says that the queue is a classic queue, which forgets
	// a rejected message before the next queue has confirmed it. Use a quorum
	// queue to be safe.
	ReasonClassicTarget = "ClassicTarget"

	// ReasonClassicTiers says that the tiers or the parking lot are classic queues,
	// which live on one node and forget a message before the next queue has
	// confirmed it. Use queueType quorum to be safe.
	ReasonClassicTiers = "ClassicTiers"

	// ReasonTargetHasOverflow says that the queue has a length limit and drops
	// messages when it is full, which excludes confirmed dead-lettering.
	// Remove the limit, or set its overflow to reject-publish.
	ReasonTargetHasOverflow = "TargetHasOverflow"

	// ReasonDeliveryLimitBelowAttempts says that the queue's delivery limit ends
	// a message before maxAttempts does. Raise the limit that the message
	// names, or lower maxAttempts.
	ReasonDeliveryLimitBelowAttempts = "DeliveryLimitBelowAttempts"

	// ReasonPolicyShadowed says that another RabbitMQ policy outranks the
	// operator's on the queue, so that failed messages are not retried. Lower
	// the priority of the policy that the message names.
	ReasonPolicyShadowed = "PolicyShadowed"

	// ReasonQueueUnavailable says that a queue has no leader or is down, so that
	// messages wait in front of it. Bring back the nodes that the message names.
	ReasonQueueUnavailable = "QueueUnavailable"

	// ReasonDeadLettersStalled says that dead letters wait in a queue and the next
	// one does not confirm them. See whether the next queue is full or down.
	ReasonDeadLettersStalled = "DeadLettersStalled"

	// ReasonParkingLotDrops says that the parking lot drops messages when it is
	// full or when they get old. Remove the limit that the message names.
	ReasonParkingLotDrops = "ParkingLotDrops"
)

// Reasons why ParkingLotHealthy is not True.
const (
	// ReasonDepthThresholdExceeded says that at least parkingLot.alert.messages
	// messages are parked. Look at them, then send them back or purge them.
	ReasonDepthThresholdExceeded = "DepthThresholdExceeded"
)
