/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

// Package topology says what should be on the broker for a RetryPolicy, as plain
// values: exchanges, queues, bindings and policies. It is pure: no context, clock,
// logger or I/O, and the same bytes for the same input. The broker package fills the
// same values from what it observes, so desired and observed compare directly.
package topology

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Args are the arguments of an exchange, a queue or a binding, or the definition of a
// policy. Values are normalised (see Normalize), so that equality is plain.
type Args map[string]any

// Equal reports whether both hold the same keys and values; nil equals empty.
func (a Args) Equal(b Args) bool {
	return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b))
}

// String returns the value of key, or "" when it is absent or not a string.
func (a Args) String(key string) string {
	s, _ := a[key].(string)
	return s
}

// Int returns the value of key and whether it is there as an integer.
func (a Args) Int(key string) (int64, bool) {
	n, ok := a[key].(int64)
	return n, ok
}

// Has reports whether key is there at all.
func (a Args) Has(key string) bool {
	_, ok := a[key]
	return ok
}

// Normalize brings the values of one map into the form that compares: whole numbers as
// int64 whatever Go or JSON made of them, the rest untouched. JSON numbers arrive as
// float64, and an x-message-ttl of 10000.0 is the 10000 that was asked for.
func Normalize(in map[string]any) Args {
	if len(in) == 0 {
		return nil
	}
	out := make(Args, len(in))
	for k, v := range in {
		out[k] = normalizeValue(v)
	}
	return out
}

func normalizeValue(v any) any {
	switch n := v.(type) {
	case int:
		return int64(n)
	case int32:
		return int64(n)
	case float64:
		if n == float64(int64(n)) {
			return int64(n)
		}
	case map[string]any:
		return map[string]any(Normalize(n))
	case []any:
		out := make([]any, len(n))
		for i := range n {
			out[i] = normalizeValue(n[i])
		}
		return out
	}
	return v
}

// Exchange types that the operator declares.
const (
	Fanout  = "fanout"
	Headers = "headers"
)

// Queue types as RabbitMQ names them.
const (
	Classic = "classic"
	Quorum  = "quorum"
	Stream  = "stream"
)

// Exchange is one exchange of a vhost.
type Exchange struct {
	Name       string
	Type       string
	Durable    bool
	AutoDelete bool
	Internal   bool
	Arguments  Args
}

// Queue is one queue of a vhost. State is set on observed queues only and takes no part
// in comparisons.
type Queue struct {
	Name       string
	Type       string
	Durable    bool
	AutoDelete bool
	Exclusive  bool
	Arguments  Args
	State      *QueueState
}

// QueueState is what the broker, and a history of observations, tell of a queue.
type QueueState struct {
	// Status is running, minority, down, stopped…; empty when the broker does not say.
	Status string
	// Policy and OperatorPolicy are the names of those in effect.
	Policy         string
	OperatorPolicy string
	// PolicyUnconfirmed is set while the broker's report of the policy in effect, which
	// lags, still says otherwise.
	PolicyUnconfirmed bool
	// Messages counts ready, unacknowledged, delayed and pending dead letters. Nil means
	// that the broker does not say, which is never the same as zero.
	Messages *int64
	// PendingDeadLetters counts at-least-once dead letters that no target has confirmed.
	PendingDeadLetters *int64
	// IdleFor is how long every observation has shown the queue with no message and no
	// binding to it. Zero while either is there or unknown.
	IdleFor time.Duration
	// PolicyFor is how long every observation has shown the same policies in effect with
	// the same definitions.
	PolicyFor time.Duration
	// StalledFor is how long pending dead letters have been there and not become fewer.
	StalledFor time.Duration
}

// Binding leads from a source exchange to a queue, or to another exchange.
type Binding struct {
	Source      string
	Destination string
	// ToExchange is set when Destination is an exchange.
	ToExchange bool
	RoutingKey string
	Arguments  Args
	// PropertiesKey is the broker's own name for an observed binding. It takes no part in
	// comparisons.
	PropertiesKey string
}

// Same reports whether both bindings route the same messages the same way.
func (b Binding) Same(o Binding) bool {
	return b.Source == o.Source && b.Destination == o.Destination && b.ToExchange == o.ToExchange &&
		b.RoutingKey == o.RoutingKey && b.Arguments.Equal(o.Arguments)
}

// Policy is a user policy or an operator policy of a vhost.
type Policy struct {
	Name       string
	Pattern    string
	ApplyTo    string
	Priority   int64
	Definition Args
}

// Equal reports whether both policies are the same in every field.
func (p Policy) Equal(o Policy) bool {
	return p.Name == o.Name && p.Pattern == o.Pattern && p.ApplyTo == o.ApplyTo &&
		p.Priority == o.Priority && p.Definition.Equal(o.Definition)
}

// Topology is the objects of one vhost, or the part of them that a policy wants.
type Topology struct {
	Exchanges        map[string]Exchange
	Queues           map[string]Queue
	Bindings         map[string][]Binding // by source
	Policies         map[string]Policy
	OperatorPolicies map[string]Policy

	// owned finds the objects of one owner without a look at those of all others.
	owned map[string]possessions
}

// possessions are the names of what an owner has or had.
type possessions struct{ queues, exchanges map[string]bool }

// New returns an empty topology.
func New() Topology {
	return Topology{
		Exchanges:        map[string]Exchange{},
		Queues:           map[string]Queue{},
		Bindings:         map[string][]Binding{},
		Policies:         map[string]Policy{},
		OperatorPolicies: map[string]Policy{},
		owned:            map[string]possessions{},
	}
}

// of returns what the owner named in the arguments has; its maps are nil where none is.
func (t Topology) of(args Args) possessions {
	owner := args.OwnerOf()
	if _, ok := t.owned[owner]; !ok && owner != "" {
		t.owned[owner] = possessions{queues: map[string]bool{}, exchanges: map[string]bool{}}
	}
	return t.owned[owner]
}

// AddExchange puts e in, in place of one of the same name.
func (t Topology) AddExchange(e Exchange) {
	t.Exchanges[e.Name] = e
	if theirs := t.of(e.Arguments).exchanges; theirs != nil {
		theirs[e.Name] = true
	}
}

// AddQueue puts q in, in place of one of the same name.
func (t Topology) AddQueue(q Queue) {
	t.Queues[q.Name] = q
	if theirs := t.of(q.Arguments).queues; theirs != nil {
		theirs[q.Name] = true
	}
}

// AddPolicy puts p in, in place of one of the same name.
func (t Topology) AddPolicy(p Policy) { t.Policies[p.Name] = p }

// Bind puts b in unless the same binding is there.
func (t Topology) Bind(b Binding) {
	if !t.Bound(b) {
		t.Bindings[b.Source] = append(t.Bindings[b.Source], b)
	}
}

// Bound reports whether the same binding is there.
func (t Topology) Bound(b Binding) bool {
	return slices.ContainsFunc(t.Bindings[b.Source], b.Same)
}

// Clone returns a copy whose objects can be added and removed without a trace in t.
func (t Topology) Clone() Topology {
	c := Topology{
		Exchanges:        maps.Clone(t.Exchanges),
		Queues:           maps.Clone(t.Queues),
		Bindings:         make(map[string][]Binding, len(t.Bindings)),
		Policies:         maps.Clone(t.Policies),
		OperatorPolicies: maps.Clone(t.OperatorPolicies),
		owned:            make(map[string]possessions, len(t.owned)),
	}
	for source, bs := range t.Bindings {
		c.Bindings[source] = slices.Clone(bs)
	}
	for owner, p := range t.owned {
		c.owned[owner] = possessions{queues: maps.Clone(p.queues), exchanges: maps.Clone(p.exchanges)}
	}
	return c
}

// RemoveQueue takes a queue out, with its bindings, as the broker does.
func (t Topology) RemoveQueue(name string) {
	delete(t.of(t.Queues[name].Arguments).queues, name)
	delete(t.Queues, name)
	t.unbind(func(b Binding) bool { return !b.ToExchange && b.Destination == name })
}

// RemoveExchange takes an exchange out, with the bindings from it and to it.
func (t Topology) RemoveExchange(name string) {
	delete(t.of(t.Exchanges[name].Arguments).exchanges, name)
	delete(t.Exchanges, name)
	delete(t.Bindings, name)
	t.unbind(func(b Binding) bool { return b.ToExchange && b.Destination == name })
}

// Unbind takes one binding out.
func (t Topology) Unbind(b Binding) { t.unbind(b.Same) }

func (t Topology) unbind(match func(Binding) bool) {
	for source, bs := range t.Bindings {
		t.Bindings[source] = slices.DeleteFunc(slices.Clone(bs), match)
	}
}

// Sorted returns the values of a map of named objects in the order of their names.
func Sorted[T any](m map[string]T) []T {
	out := make([]T, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[name])
	}
	return out
}

// SortedBindings returns all bindings in one fixed order.
func (t Topology) SortedBindings() []Binding {
	var out []Binding
	for _, source := range slices.Sorted(maps.Keys(t.Bindings)) {
		bs := slices.Clone(t.Bindings[source])
		slices.SortStableFunc(bs, func(a, b Binding) int { return strings.Compare(a.sortKey(), b.sortKey()) })
		out = append(out, bs...)
	}
	return out
}

func (b Binding) sortKey() string {
	return b.Destination + "\x00" + b.RoutingKey + "\x00" + b.Arguments.text()
}

// text renders arguments in the order of their keys.
func (a Args) text() string {
	var sb strings.Builder
	for _, k := range slices.Sorted(maps.Keys(a)) {
		sb.WriteString(k + "=" + text(a[k]) + ";")
	}
	return sb.String()
}
