/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package broker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// explain turns what a request came back with into an Error, nil into nil. RabbitMQ
// answers 401 to a wrong password, a missing tag, a missing permission and, until 4.2.8
// and 4.3.2, to a vhost that the user may not see, which is 404 from then on. What it
// was is found out by asking further, and only here.
func (c *Client) explain(ctx context.Context, op operation, err error) error {
	if err == nil {
		return nil
	}
	if done, ok := errors.AsType[*Error](err); ok {
		return done
	}
	if status, ok := errors.AsType[*statusError](err); ok {
		switch status.status {
		case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
			return c.diagnose(ctx, op, status)
		}
	}
	return c.explainPlainly(op, err)
}

// explainPlainly asks nothing further, so that a question that fails while another
// failure is looked into leads to no more questions.
func (c *Client) explainPlainly(op operation, err error) error {
	if errors.Is(err, errUndecodable) {
		return c.newError(op, Internal, errUndecodable.Error(), nil)
	}
	if status, ok := errors.AsType[*statusError](err); ok {
		return c.ofStatus(op, status)
	}
	return c.ofTransport(op, err)
}

type whoami struct {
	Name string `json:"name"`
	// Tags is a list, and was a string with commas before 3.9.
	Tags any `json:"tags"`
}

func (w whoami) has(tags ...string) bool {
	said, _ := w.Tags.(string)
	all := strings.Split(said, ",")
	list, _ := w.Tags.([]any)
	for _, t := range list {
		all = append(all, fmt.Sprint(t))
	}
	return slices.ContainsFunc(all, func(t string) bool { return slices.Contains(tags, t) })
}

func (c *Client) diagnose(ctx context.Context, op operation, first *statusError) error {
	var who whoami
	if err := c.get(ctx, "whoami", &who); err != nil {
		return c.explainWhoami(op, err)
	}
	if op.vhost == "" {
		return c.ofStatus(op, first)
	}
	if err := c.access(ctx, op.vhost); err != nil {
		return c.explainAccess(ctx, op, who, err)
	}
	switch {
	case first.status == http.StatusNotFound:
		return c.ofStatus(op, first)
	case op.policy && !who.has("policymaker", "administrator"):
		return c.newError(op, PermissionDenied, fmt.Sprintf("user %q lacks the tag policymaker", c.cfg.Username), nil)
	}
	return c.newError(op, PermissionDenied, fmt.Sprintf("user %q lacks a permission in the vhost: it needs %s", c.cfg.Username, op.needs), nil)
}

func (c *Client) explainWhoami(op operation, err error) error {
	status, ok := errors.AsType[*statusError](err)
	switch {
	case !ok:
		return c.explainPlainly(op, err)
	case status.status == http.StatusUnauthorized && strings.EqualFold(status.reason, "Not management user"):
		return c.newError(op, PermissionDenied, fmt.Sprintf("user %q has no tag that lets it use the management API: it needs policymaker", c.cfg.Username), nil)
	case status.status == http.StatusUnauthorized, status.status == http.StatusForbidden:
		return c.newError(op, AuthenticationFailed, fmt.Sprintf("the broker does not accept user %q with this password", c.cfg.Username), nil)
	case status.status == http.StatusNotFound:
		return c.newError(op, Internal, errUndecodable.Error(), nil)
	}
	return c.ofStatus(op, status)
}

// access asks for the smallest thing that takes no more than access to the vhost.
// GET /api/vhosts/{vhost} won't do: it takes an administrator.
func (c *Client) access(ctx context.Context, vhost string) error {
	return c.get(ctx, in("policies", vhost)+"?columns=name", new([]any))
}

// explainAccess tells a vhost that is not there from one that the user may not see.
func (c *Client) explainAccess(ctx context.Context, op operation, who whoami, err error) error {
	status, ok := errors.AsType[*statusError](err)
	if !ok {
		return c.explainPlainly(op, err)
	}
	switch status.status {
	case http.StatusUnauthorized, http.StatusForbidden: // a vhost that is not there gives 404
		return c.noAccess(op)
	case http.StatusNotFound:
	default:
		return c.ofStatus(op, status)
	}
	if who.has("administrator", "monitoring") {
		return c.explainMissing(ctx, op)
	}
	// To a user who can't list all vhosts the two differ by one word: "Object Not Found"
	// is what the router says of a path that leads nowhere, "not_found" what stands for
	// no access since 4.2.9 and 4.3.3.
	if status.name == "Object Not Found" {
		return c.vhostNotFound(op)
	}
	return c.noAccess(op)
}

// explainMissing looks for the vhost in the list of all. A list that can't be read proves
// nothing, and a vhost counts as gone only when it is: there is then nothing to clean up.
func (c *Client) explainMissing(ctx context.Context, op operation) error {
	there, err := c.vhostThere(ctx, op.vhost)
	switch {
	case err != nil:
		return c.explainPlainly(op, err)
	case there:
		return c.noAccess(op)
	}
	return c.vhostNotFound(op)
}

func (c *Client) vhostThere(ctx context.Context, vhost string) (bool, error) {
	var all []struct {
		Name string `json:"name"`
	}
	if err := c.get(ctx, "vhosts?columns=name", &all); err != nil {
		return false, err
	}
	for _, v := range all {
		if v.Name == vhost {
			return true, nil
		}
	}
	return false, nil
}

func (c *Client) noAccess(op operation) error {
	return c.newError(op, PermissionDenied, fmt.Sprintf(
		"user %q has no access to the vhost: it needs the tag policymaker, and configure, write and read permission in the vhost", c.cfg.Username), nil)
}

func (c *Client) vhostNotFound(op operation) error {
	return c.newError(op, VhostNotFound, "the vhost does not exist", nil)
}
