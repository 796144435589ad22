/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package deadletter

import (
	"reflect"
	"slices"
	"strings"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// Routing is the way that a message took through exchanges.
type Routing struct {
	// Queues are where it arrives, each once, by name.
	Queues []string
	// Missing are exchanges on its way that are not there.
	Missing []string
	// Visited are the exchanges that it came through.
	Visited []string
}

// Route follows a message from an exchange to queues: through bindings from exchange to
// exchange, and to the alternate exchange wherever an exchange has no binding that
// matches. An exchange is entered once.
func Route(t topology.Topology, exchange string, m Message) Routing {
	var r Routing
	pending := []string{exchange}
	for len(pending) > 0 {
		name := pending[0]
		pending = pending[1:]
		if slices.Contains(r.Visited, name) || slices.Contains(r.Missing, name) {
			continue
		}
		if name == "" {
			r.visitDefault(t, m)
			continue
		}
		e, ok := t.Exchanges[name]
		if !ok {
			r.Missing = append(r.Missing, name)
			continue
		}
		pending = append(pending, r.visit(t, e, m)...)
	}
	slices.Sort(r.Queues)
	r.Queues = slices.Compact(r.Queues)
	return r
}

func (r *Routing) visitDefault(t topology.Topology, m Message) {
	r.Visited = append(r.Visited, "")
	for _, key := range m.Keys {
		r.arrive(t, key)
	}
}

func (r *Routing) arrive(t topology.Topology, queue string) {
	if _, ok := t.Queues[queue]; ok {
		r.Queues = append(r.Queues, queue)
	}
}

// visit returns the exchanges to go on to.
func (r *Routing) visit(t topology.Topology, e topology.Exchange, m Message) []string {
	r.Visited = append(r.Visited, e.Name)
	var next []string
	matched := false
	for _, b := range t.Bindings[e.Name] {
		if !matches(e.Type, b, m) {
			continue
		}
		matched = true
		if b.ToExchange {
			next = append(next, b.Destination)
		} else {
			r.arrive(t, b.Destination)
		}
	}
	if matched {
		return next
	}
	// As an alternate the default exchange is there and routes nothing: its ways to the
	// queues are no bindings.
	if alternate, ok := t.AlternateOf(e); ok && alternate != "" {
		next = append(next, alternate)
	}
	return next
}

func matches(exchangeType string, b topology.Binding, m Message) bool {
	switch exchangeType {
	case topology.Fanout:
		return true
	case "direct":
		return slices.Contains(m.Keys, b.RoutingKey)
	case "topic":
		return slices.ContainsFunc(m.Keys, func(key string) bool {
			return topicMatches(words(b.RoutingKey), words(key))
		})
	case topology.Headers:
		return headersMatch(b.Arguments, m.Headers)
	}
	return false
}

// words splits a routing key; the empty one has none.
func words(key string) []string {
	if key == "" {
		return nil
	}
	return strings.Split(key, ".")
}

// topicMatches: * stands for one word, # for any number of words.
func topicMatches(pattern, key []string) bool {
	if len(pattern) == 0 {
		return len(key) == 0
	}
	if pattern[0] == "#" {
		return topicMatches(pattern[1:], key) || len(key) > 0 && topicMatches(pattern, key[1:])
	}
	return len(key) > 0 && (pattern[0] == "*" || pattern[0] == key[0]) && topicMatches(pattern[1:], key[1:])
}

// headersMatch: without -with-x, arguments whose keys begin with x- are left out of the
// comparison, so that "all" of none of them matches every message.
func headersMatch(args, headers topology.Args) bool {
	mode := args.String("x-match")
	withX := strings.HasSuffix(mode, "-with-x")
	one := mode == "any" || mode == "any-with-x"
	for key, want := range args {
		if key == "x-match" || (!withX && strings.HasPrefix(key, "x-")) {
			continue
		}
		have, ok := headers[key]
		if same := ok && (want == nil || reflect.DeepEqual(have, want)); same == one {
			return one
		}
	}
	return !one
}
