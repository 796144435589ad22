/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package broker

import (
	"errors"
	"fmt"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/plan"
)

// checkName refuses the names that a path can't carry: RabbitMQ's server takes "." and
// ".." for steps in the path even when they are escaped, and an empty name for the list
// of all objects, so the request would be about something else.
func checkName(kind, name string) error {
	switch name {
	case "", ".", "..":
		return fmt.Errorf("the management API can't address a %s named %q", kind, name)
	}
	return nil
}

func checkStep(vhost string, s plan.Step) error {
	err := checkName("vhost", vhost)
	switch s.Action {
	case plan.DeclareQueue, plan.DeleteQueue:
		err = errors.Join(err, checkName("queue", s.Queue.Name))
	case plan.DeclareExchange, plan.DeleteExchange:
		err = errors.Join(err, checkName("exchange", s.Exchange.Name))
	case plan.PutPolicy, plan.DeletePolicy:
		err = errors.Join(err, checkName("policy", s.Policy.Name))
	case plan.Bind, plan.Unbind:
		err = errors.Join(err, checkName("exchange", s.Binding.Source), checkName("queue or exchange", s.Binding.Destination))
		if s.Action == plan.Unbind {
			err = errors.Join(err, checkName("binding", s.Binding.PropertiesKey))
		}
	default:
		err = errors.Join(err, fmt.Errorf("there is no action %q", s.Action))
	}
	return err
}
