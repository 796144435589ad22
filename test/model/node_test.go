/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package model

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/broker"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/plan"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

// node is a real broker with the project's own client, and with a plain one for what the
// project never does: vhosts and operator policies.
type node struct {
	*sandbox.Broker
	client *broker.Client
}

func newNode(b *sandbox.Broker) (*node, error) {
	c, err := broker.NewClient(broker.Config{ManagementURL: b.ManagementURL, Username: b.Username, Password: b.Password})
	return &node{Broker: b, client: c}, err
}

// requestTimeout bounds one management request; two busy cores make some of them slow.
const requestTimeout = time.Minute

func (n *node) do(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, n.ManagementURL+"/api"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.SetBasicAuth(n.Username, n.Password)
	req.Header.Set("Content-Type", "application/json")
	req.Close = true // the broker closes idle connections, and a PUT is not tried again
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s %s: %s: %s", method, path, res.Status, answer)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer, out)
}

func (n *node) createVhost(ctx context.Context, vhost string) error {
	if err := n.do(ctx, http.MethodPut, "/vhosts/"+vhost, map[string]any{}, nil); err != nil {
		return err
	}
	all := map[string]any{"configure": ".*", "write": ".*", "read": ".*"}
	return n.do(ctx, http.MethodPut, "/permissions/"+vhost+"/"+url.PathEscape(n.Username), all, nil)
}

func (n *node) deleteVhost(ctx context.Context, vhost string) error {
	return n.do(ctx, http.MethodDelete, "/vhosts/"+vhost, nil, nil)
}

// declare puts the topology on the broker. Policies come first, so that each queue begins
// its life under them: on a quorum queue they take effect with a delay.
func (n *node) declare(ctx context.Context, vhost string, t topology.Topology) error {
	for _, p := range topology.Sorted(t.OperatorPolicies) {
		body := map[string]any{"pattern": p.Pattern, "apply-to": p.ApplyTo, "priority": p.Priority, "definition": p.Definition}
		if err := n.do(ctx, http.MethodPut, "/operator-policies/"+vhost+"/"+url.PathEscape(p.Name), body, nil); err != nil {
			return err
		}
	}
	var steps []plan.Step
	for _, p := range topology.Sorted(t.Policies) {
		steps = append(steps, plan.Step{Action: plan.PutPolicy, Policy: p})
	}
	for _, q := range topology.Sorted(t.Queues) {
		steps = append(steps, plan.Step{Action: plan.DeclareQueue, Queue: q})
	}
	for _, e := range topology.Sorted(t.Exchanges) {
		steps = append(steps, plan.Step{Action: plan.DeclareExchange, Exchange: e})
	}
	for _, b := range t.SortedBindings() {
		steps = append(steps, plan.Step{Action: plan.Bind, Binding: b})
	}
	return n.apply(ctx, vhost, steps)
}

func (n *node) observe(ctx context.Context, vhost string) (topology.Topology, error) {
	var s broker.Snapshot
	err := patiently(ctx, func() error {
		var err error
		s, err = n.client.Observe(ctx, vhost)
		return err
	})
	return s.Topology, err
}

func (n *node) apply(ctx context.Context, vhost string, steps []plan.Step) error {
	return patiently(ctx, func() error { return n.client.Apply(ctx, vhost, steps).Err })
}

// patiently repeats what the broker itself fails at, as the operator does at its next turn:
// a node that has just started, busy with a dozen new vhosts, answers some requests with 500.
func patiently(ctx context.Context, try func() error) error {
	waiting, cancel := context.WithTimeout(ctx, arrival)
	defer cancel()
	var last error
	err := sandbox.Poll(waiting, 250*time.Millisecond, func() (bool, error) {
		last = try()
		class := broker.ClassOf(last)
		if last != nil && (class == broker.Internal || class == broker.Unreachable) {
			return false, nil
		}
		return true, last
	})
	return cmp.Or(last, err)
}

// converge builds a ladder as the operator does, from one observation to the next, and
// returns the last of them.
func (n *node) converge(ctx context.Context, vhost string, r topology.Request) (topology.Ladder, topology.Topology, error) {
	for range 5 {
		observed, err := n.observe(ctx, vhost)
		if err != nil {
			return topology.Ladder{}, observed, err
		}
		l := topology.Desired(r, observed)
		p := plan.Compute(l, observed)
		if len(p.Conflicts) > 0 {
			return l, observed, fmt.Errorf("the plan has conflicts: %v", p.Conflicts)
		}
		if p.Done() {
			return l, observed, nil
		}
		if err := n.apply(ctx, vhost, p.Steps); err != nil {
			return l, observed, err
		}
	}
	return topology.Ladder{}, topology.Topology{}, errors.New("the plan is never done")
}

// spoiler collects what to break in a ladder.
type spoiler struct {
	topology.Ladder
	observed topology.Topology
	steps    []plan.Step
}

// unbind takes off the bindings of the ladder that match.
func (s *spoiler) unbind(match func(topology.Binding) bool) {
	for _, b := range s.observed.SortedBindings() {
		if s.Wanted.Bound(b) && match(b) {
			s.steps = append(s.steps, plan.Step{Action: plan.Unbind, Binding: b})
		}
	}
}

func (s *spoiler) bind(b topology.Binding) {
	s.steps = append(s.steps, plan.Step{Action: plan.Bind, Binding: b})
}

func (s *spoiler) deleteExchange(name string) {
	s.steps = append(s.steps, plan.Step{Action: plan.DeleteExchange, Exchange: topology.Exchange{Name: name}})
}

func (s *spoiler) declareExchange(e topology.Exchange) {
	s.steps = append(s.steps, plan.Step{Action: plan.DeclareExchange, Exchange: e})
}

func (s *spoiler) deleteQueue(name string) {
	s.steps = append(s.steps, plan.Step{Action: plan.DeleteQueue, Queue: topology.Queue{Name: name}})
}

func (s *spoiler) putPolicy(p topology.Policy) {
	s.steps = append(s.steps, plan.Step{Action: plan.PutPolicy, Policy: p})
}

func (s *spoiler) deletePolicy(name string) {
	s.steps = append(s.steps, plan.Step{Action: plan.DeletePolicy, Policy: topology.Policy{Name: name}})
}

// prepare brings the broker to where the scenario begins, and returns what it shows then.
func (n *node) prepare(ctx context.Context, vhost string, s scenario) (topology.Topology, error) {
	if err := n.createVhost(ctx, vhost); err != nil {
		return topology.Topology{}, err
	}
	if err := n.declare(ctx, vhost, s.topology); err != nil {
		return topology.Topology{}, err
	}
	if s.ladder == nil {
		return n.observe(ctx, vhost)
	}
	l, observed, err := n.converge(ctx, vhost, *s.ladder)
	if err != nil || s.spoil == nil {
		return observed, err
	}
	sp := spoiler{Ladder: l, observed: observed}
	s.spoil(&sp)
	if err := n.apply(ctx, vhost, sp.steps); err != nil {
		return observed, err
	}
	return n.observe(ctx, vhost)
}
