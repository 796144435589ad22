/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// describeQueue puts a queue's own properties beside its arguments, so that one
// comparison sees them all.
func describeQueue(q topology.Queue) topology.Args {
	return describe(q.Arguments, topology.Args{"type": q.Type, "durable": q.Durable, "auto-delete": q.AutoDelete, "exclusive": q.Exclusive})
}

func describeExchange(e topology.Exchange) topology.Args {
	return describe(e.Arguments, topology.Args{"type": e.Type, "durable": e.Durable, "auto-delete": e.AutoDelete, "internal": e.Internal})
}

func describe(args, properties topology.Args) topology.Args {
	out := maps.Clone(properties)
	maps.Copy(out, args)
	return out
}

func sortedKeys(a, b topology.Args) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

func valueText(args topology.Args, key string) string {
	v, ok := args[key]
	if !ok {
		return "unset"
	}
	return fmt.Sprint(v)
}
