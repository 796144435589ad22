/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package controllers

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
)

// minVersion is the first release whose cycle detection goes by the order of deaths; those
// before 3.13.3 drop messages that were retried.
const minVersion = "3.13.3"

// supported reports whether the ladder works on a broker of the version. A version that
// can't be read is not refused: it is the broker's to say what it can't do.
func supported(brokerVersion string) bool {
	v, err := version.ParseGeneric(brokerVersion)
	return err != nil || v.AtLeast(version.MustParseGeneric(minVersion))
}

func unsupported(brokerVersion string) *failure {
	return &failure{
		reason: v1alpha1.ReasonUnsupportedBrokerVersion,
		message: fmt.Sprintf("the broker is RabbitMQ %s; this needs %s or newer, since older ones drop messages that come back to a queue",
			brokerVersion, minVersion),
	}
}
