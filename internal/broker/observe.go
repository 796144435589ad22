/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package broker

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// Snapshot is one look at a vhost. Callers share it and MUST NOT change it.
type Snapshot struct {
	About

	Topology topology.Topology
	// TakenAt is the moment before the first request: what was written before it is seen.
	TakenAt time.Time
	// finishedAt is the moment after the last answer: what is seen was so by then.
	finishedAt time.Time
	// disputed holds, by queue, the policy that the broker reports where its own rules lead
	// to another.
	disputed map[string]string
}

// Observe looks at a vhost with six requests and MUST NOT change anything on the broker.
// It knows no history: the durations of queue states are those of an Observer.
func (c *Client) Observe(ctx context.Context, vhost string) (Snapshot, error) {
	op := operation{text: "observe the objects", vhost: vhost, needs: "read permission"}
	if err := checkName("vhost", vhost); err != nil {
		return Snapshot{}, c.newError(op, VhostNotFound, err.Error(), nil)
	}
	s := Snapshot{TakenAt: time.Now()}
	var err error
	if s.About, err = c.about(ctx); err != nil {
		return Snapshot{}, c.explain(ctx, op, err)
	}
	// Queues after policies, so that no policy is taken to be in effect before it was
	// written; bindings after queues, so that no queue counts as idle that was bound since.
	look := look{client: c, vhost: vhost, into: topology.New(), disputed: map[string]string{}}
	for _, read := range []func(context.Context) error{look.policies, look.operatorPolicies, look.exchanges, look.queues, look.bindings} {
		if err := read(ctx); err != nil {
			return Snapshot{}, c.explain(ctx, op, err)
		}
	}
	s.Topology, s.finishedAt, s.disputed = look.into, time.Now(), look.disputed
	return s, nil
}

type look struct {
	client *Client
	vhost  string
	into   topology.Topology
	// ours are the names of policies that match one queue alone, by pattern.
	ours     map[string]string
	disputed map[string]string
}

func list[T any](ctx context.Context, l *look, path string) ([]T, error) {
	var all []T
	err := l.client.get(ctx, path, &all)
	return all, err
}

type policy struct {
	Name       string `json:"name"`
	Pattern    string `json:"pattern"`
	ApplyTo    string `json:"apply-to"`
	Priority   count  `json:"priority"`
	Definition args   `json:"definition"`
}

func (l *look) policies(ctx context.Context) error {
	return l.policiesInto(ctx, "policies", l.into.Policies)
}

func (l *look) operatorPolicies(ctx context.Context) error {
	return l.policiesInto(ctx, "operator-policies", l.into.OperatorPolicies)
}

func (l *look) policiesInto(ctx context.Context, kind string, into map[string]topology.Policy) error {
	all, err := list[policy](ctx, l, in(kind, l.vhost))
	for _, p := range all {
		t := topology.Policy{Name: p.Name, Pattern: p.Pattern, ApplyTo: p.ApplyTo, Definition: topology.Args(p.Definition)}
		if p.Priority.n != nil {
			t.Priority = *p.Priority.n
		}
		into[p.Name] = t
	}
	return err
}

type exchange struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Durable    flag   `json:"durable"`
	AutoDelete flag   `json:"auto_delete"`
	Internal   flag   `json:"internal"`
	Arguments  args   `json:"arguments"`
}

func (l *look) exchanges(ctx context.Context) error {
	all, err := list[exchange](ctx, l, in("exchanges", l.vhost)+"?columns=name,type,durable,auto_delete,internal,arguments")
	for _, e := range all {
		l.into.AddExchange(topology.Exchange{
			Name: e.Name, Type: e.Type, Durable: bool(e.Durable), AutoDelete: bool(e.AutoDelete),
			Internal: bool(e.Internal), Arguments: topology.Args(e.Arguments),
		})
	}
	return err
}

type queue struct {
	Name               string `json:"name"`
	Type               string `json:"type"`
	Durable            flag   `json:"durable"`
	AutoDelete         flag   `json:"auto_delete"`
	Exclusive          flag   `json:"exclusive"`
	Arguments          args   `json:"arguments"`
	State              string `json:"state"`
	Policy             name   `json:"policy"`
	OperatorPolicy     name   `json:"operator_policy"`
	Messages           count  `json:"messages"`
	PendingDeadLetters count  `json:"messages_dlx"`
}

// queueColumns need the statistics, which lag: counts and the policies in effect are
// missing until a queue's first tick and up to 10 s old from then on. Where management.disable_stats is set the broker
// leaves out messages_dlx, before 4.2.5 the policies too, and messages, unless totals
// are asked for, which changes nothing elsewhere.
const queueColumns = "?enable_queue_totals=true&columns=name,type,durable,auto_delete,exclusive,arguments,state,policy,operator_policy,messages,messages_dlx"

func (l *look) queues(ctx context.Context) error {
	all, err := list[queue](ctx, l, in("queues", l.vhost)+queueColumns)
	l.ours = map[string]string{}
	for _, p := range l.into.Policies {
		if strings.HasPrefix(p.Name, topology.PolicyPrefix) {
			l.ours[p.Pattern] = p.Name
		}
	}
	for _, q := range all {
		t := topology.Queue{
			Name: q.Name, Type: q.Type, Durable: bool(q.Durable), AutoDelete: bool(q.AutoDelete),
			Exclusive: bool(q.Exclusive), Arguments: topology.Args(q.Arguments),
		}
		t.State = l.stateOf(t, q)
		l.into.AddQueue(t)
	}
	return err
}

func (l *look) stateOf(t topology.Queue, q queue) *topology.QueueState {
	s := &topology.QueueState{
		Status:             q.State,
		Policy:             q.Policy.value,
		OperatorPolicy:     q.OperatorPolicy.value,
		Messages:           q.Messages.n,
		PendingDeadLetters: q.PendingDeadLetters.n,
	}
	// A queue whose policy is not said, which is not null, has one all the same: the one
	// that the broker's rules lead to.
	if !q.Policy.known {
		s.Policy = inEffect(l.into.Policies, t)
	}
	l.settleDispute(t, s)
	if !q.OperatorPolicy.known {
		s.OperatorPolicy = inEffect(l.into.OperatorPolicies, t)
	}
	return s
}

// settleDispute decides between the report of the policy on a target, which lags, and the
// policies of the vhost, which do not. The rules count; whether the report was right after
// all shows when it stays the same for longer than it can lag.
func (l *look) settleDispute(q topology.Queue, s *topology.QueueState) {
	ours, ok := l.ours[topology.ExactPattern(q.Name)]
	if !ok || ours == s.Policy {
		return
	}
	if ruled := inEffect(l.into.Policies, q); ruled != s.Policy {
		l.disputed[q.Name] = s.Policy
		s.Policy, s.PolicyUnconfirmed = ruled, true
	}
}

func inEffect(policies map[string]topology.Policy, q topology.Queue) string {
	p, _ := topology.Topology{Policies: policies}.InEffect(q)
	return p.Name
}

type binding struct {
	Source          string `json:"source"`
	Destination     string `json:"destination"`
	DestinationType string `json:"destination_type"`
	RoutingKey      string `json:"routing_key"`
	Arguments       args   `json:"arguments"`
	PropertiesKey   string `json:"properties_key"`
}

// unlistable: RabbitMQ (seen up to 4.3.6) fails to name such a binding, and with it every
// list that has it.
const unlistable = "it can't list the bindings; it fails to when one of them has both arguments and a routing key with a ~, and can again when that binding is deleted"

// bindings leaves out those of the default exchange, which every queue has.
func (l *look) bindings(ctx context.Context) error {
	all, err := list[binding](ctx, l, in("bindings", l.vhost))
	if status, ok := errors.AsType[*statusError](err); ok && status.status == http.StatusInternalServerError {
		status.reason = unlistable
	}
	for _, b := range all {
		if b.Source == "" {
			continue
		}
		l.into.Bindings[b.Source] = append(l.into.Bindings[b.Source], topology.Binding{
			Source: b.Source, Destination: b.Destination, ToExchange: b.DestinationType == "exchange",
			RoutingKey: b.RoutingKey, Arguments: topology.Args(b.Arguments), PropertiesKey: b.PropertiesKey,
		})
	}
	return err
}
