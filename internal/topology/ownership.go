/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package topology

import (
	"fmt"
	"maps"
	"slices"
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
	maps.Copy(out, more)
	return out
}

// OwnedQueues returns the queues that carry the owner's argument, by name.
func (t Topology) OwnedQueues(owner Owner) []Queue {
	o := owner.String()
	return present(t.owned[o].queues, t.Queues, func(q Queue) bool { return q.Arguments.OwnerOf() == o })
}

// OwnedExchanges returns the exchanges that carry the owner's argument, by name.
func (t Topology) OwnedExchanges(owner Owner) []Exchange {
	o := owner.String()
	return present(t.owned[o].exchanges, t.Exchanges, func(e Exchange) bool { return e.Arguments.OwnerOf() == o })
}

// present returns those of the names that are still there and still the owner's.
func present[T any](names map[string]bool, all map[string]T, mine func(T) bool) []T {
	var out []T
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if v, ok := all[name]; ok && mine(v) {
			out = append(out, v)
		}
	}
	return out
}
