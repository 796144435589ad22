/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package topology

import (
	"fmt"
	"strings"
)

// Arguments that mark what the operator made. RabbitMQ keeps them, shows them, and
// ignores them when a client declares the same queue without them.
const (
	ArgOwner   = "retry-operator.io/owner"
	ArgRole    = "retry-operator.io/role"
	ArgAttempt = "retry-operator.io/attempt"
)

// Role says what an object of ours is for.
type Role string

// The roles of queues and exchanges.
const (
	RoleTier         Role = "tier"
	RoleParkingLot   Role = "parking-lot"
	RoleReturn       Role = "return"
	RoleDeadLetter   Role = "dead-letter"
	RoleFirstFailure Role = "first-failure"
	RolePark         Role = "park"
)

// Owner is the RetryPolicy that an object on the broker belongs to. Installation tells
// clusters apart that share a broker.
type Owner struct {
	Installation string
	Namespace    string
	Name         string
}

// String is the value of the owner argument. None of the three holds a slash.
func (o Owner) String() string { return o.Installation + "/" + o.Namespace + "/" + o.Name }

// ParseOwner reads an owner argument.
func ParseOwner(s string) (Owner, error) {
	parts := strings.Split(s, "/")
	if len(parts) != 3 {
		return Owner{}, fmt.Errorf("owner %q is not installation/namespace/name", s)
	}
	return Owner{Installation: parts[0], Namespace: parts[1], Name: parts[2]}, nil
}

// OwnerOf returns the value of the owner argument, or "".
func (a Args) OwnerOf() string { return a.String(ArgOwner) }

// RoleOf returns the role argument.
func (a Args) RoleOf() Role { return Role(a.String(ArgRole)) }

// AttemptOf returns the attempt argument, or 0.
func (a Args) AttemptOf() int {
	n, _ := a.Int(ArgAttempt)
	return int(n)
}

func (o Owner) args(role Role, more Args) Args {
	out := Args{ArgOwner: o.String(), ArgRole: string(role)}
	for k, v := range more {
		out[k] = v
	}
	return out
}

// OwnedQueues returns the queues that carry the owner's argument, by name.
func (t Topology) OwnedQueues(owner Owner) []Queue {
	return owned(t.Queues, func(q Queue) bool { return q.Arguments.OwnerOf() == owner.String() })
}

// OwnedExchanges returns the exchanges that carry the owner's argument, by name.
func (t Topology) OwnedExchanges(owner Owner) []Exchange {
	return owned(t.Exchanges, func(e Exchange) bool { return e.Arguments.OwnerOf() == owner.String() })
}

func owned[T any](all map[string]T, mine func(T) bool) []T {
	found := map[string]T{}
	for name, v := range all {
		if mine(v) {
			found[name] = v
		}
	}
	return Sorted(found)
}
