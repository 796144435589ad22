/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/plan"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// Report says how far Apply has come.
type Report struct {
	Applied []plan.Step
	// Failed is the step that Err stopped; nil when all were applied.
	Failed *plan.Step
	Err    error
}

// Apply carries out steps in their order and stops at the first that fails. Each step can
// be repeated: what is there already, or gone already, is done.
func (c *Client) Apply(ctx context.Context, vhost string, steps []plan.Step) Report {
	var r Report
	for i := range steps {
		if err := c.applyOne(ctx, vhost, steps[i]); err != nil {
			r.Failed, r.Err = &steps[i], err
			return r
		}
		r.Applied = append(r.Applied, steps[i])
	}
	return r
}

func (c *Client) applyOne(ctx context.Context, vhost string, s plan.Step) error {
	op := operation{text: s.String(), vhost: vhost, needs: needs[s.Action]}
	op.policy = s.Action == plan.PutPolicy || s.Action == plan.DeletePolicy
	if err := checkStep(vhost, s); err != nil {
		return c.newError(op, Rejected, err.Error(), nil)
	}
	err := c.write(ctx, vhost, s)
	if deletes(s.Action) && isNotFound(err) {
		// Gone already, unless 404 stands for a vhost that the user may not see.
		if c.access(ctx, vhost) == nil {
			return nil
		}
	}
	return c.explain(ctx, op, err)
}

// needs are RabbitMQ's permissions for each action.
var needs = map[plan.Action]string{
	plan.DeclareQueue:    "configure and read permission on the queue, and write permission on its dead-letter exchange",
	plan.DeclareExchange: "configure and read permission on the exchange, and write permission on its alternate exchange",
	plan.Bind:            "read permission on the source and write permission on the destination",
	plan.PutPolicy:       "the tag policymaker",
	plan.Unbind:          "read permission on the source and write permission on the destination",
	plan.DeletePolicy:    "the tag policymaker",
	plan.DeleteExchange:  "configure permission on the exchange",
	plan.DeleteQueue:     "configure permission on the queue",
}

func deletes(a plan.Action) bool {
	return slices.Contains([]plan.Action{plan.Unbind, plan.DeletePolicy, plan.DeleteExchange, plan.DeleteQueue}, a)
}

func isNotFound(err error) bool {
	e, ok := errors.AsType[*statusError](err)
	return ok && e.status == http.StatusNotFound
}

func (c *Client) write(ctx context.Context, vhost string, s plan.Step) error {
	if s.Action == plan.DeclareExchange {
		return c.declareExchange(ctx, vhost, s.Exchange)
	}
	r, err := c.rabbitHole(ctx)
	if err != nil {
		return err
	}
	switch s.Action {
	case plan.DeclareQueue:
		_, err = r.DeclareQueue(vhost, s.Queue.Name, rabbithole.QueueSettings{
			Type:       s.Queue.Type,
			Durable:    s.Queue.Durable,
			AutoDelete: s.Queue.AutoDelete,
			Arguments:  maps.Clone(s.Queue.Arguments), // rabbit-hole writes the type into them
		})
	case plan.Bind:
		_, err = r.DeclareBinding(vhost, bindingInfo(s.Binding))
	case plan.PutPolicy:
		_, err = r.PutPolicy(vhost, s.Policy.Name, rabbithole.Policy{
			Vhost:      vhost,
			Name:       s.Policy.Name,
			Pattern:    s.Policy.Pattern,
			ApplyTo:    s.Policy.ApplyTo,
			Priority:   int(s.Policy.Priority),
			Definition: rabbithole.PolicyDefinition(s.Policy.Definition),
		})
	case plan.Unbind:
		_, err = r.DeleteBinding(vhost, bindingInfo(s.Binding))
	case plan.DeletePolicy:
		_, err = r.DeletePolicy(vhost, s.Policy.Name)
	case plan.DeleteExchange:
		_, err = r.DeleteExchange(vhost, s.Exchange.Name)
	case plan.DeleteQueue: // without if-empty, which quorum queues refuse
		_, err = r.DeleteQueue(vhost, s.Queue.Name)
	default:
		err = fmt.Errorf("unknown action %q", s.Action)
	}
	return err
}

func bindingInfo(b topology.Binding) rabbithole.BindingInfo {
	kind := "queue"
	if b.ToExchange {
		kind = "exchange"
	}
	return rabbithole.BindingInfo{
		Source: b.Source, Destination: b.Destination, DestinationType: kind,
		RoutingKey: b.RoutingKey, Arguments: b.Arguments, PropertiesKey: b.PropertiesKey,
	}
}

// declareExchange is not rabbit-hole's, which can't make an exchange internal.
func (c *Client) declareExchange(ctx context.Context, vhost string, e topology.Exchange) error {
	arguments := e.Arguments
	if arguments == nil {
		arguments = topology.Args{}
	}
	body, err := json.Marshal(map[string]any{
		"type": e.Type, "durable": e.Durable, "auto_delete": e.AutoDelete, "internal": e.Internal, "arguments": arguments,
	})
	if err != nil {
		return err
	}
	return c.do(ctx, http.MethodPut, in("exchanges", vhost)+"/"+url.PathEscape(e.Name), body, nil)
}
