/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package broker

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"syscall"
)

// Class says what the reader of an error should do about it.
type Class string

// The classes.
const (
	// Unreachable is a broker that does not answer: wrong address, network, or down.
	Unreachable Class = "Unreachable"
	// AMQPUnreachable is a broker that does not answer over AMQP, as opposed to its
	// management API: wrong address, network, certificate, or another protocol.
	AMQPUnreachable Class = "AMQPUnreachable"
	// AuthenticationFailed is a user or password that the broker does not accept.
	AuthenticationFailed Class = "AuthenticationFailed"
	// PermissionDenied is a user who lacks a tag, access to the vhost or a permission in it.
	PermissionDenied Class = "PermissionDenied"
	// VhostNotFound is a vhost that is not there.
	VhostNotFound Class = "VhostNotFound"
	// Rejected is a request that the broker refuses for what it asks.
	Rejected Class = "Rejected"
	// Internal is a broker that fails, or an answer that can't be read.
	Internal Class = "Internal"
)

// Error is a failed conversation with a broker: one sentence without credentials.
type Error struct {
	Class Class
	// Operation is what was tried, Host with whom, Detail what came of it.
	Operation string
	Host      string
	Detail    string

	cause error
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s on %s: %s", oneLine(e.Operation, maxName), e.Host, e.Detail)
}

// Unwrap returns a context's error or a system error, never an answer of the broker.
func (e *Error) Unwrap() error { return e.cause }

// ClassOf returns the class of an error; "" for nil, and for an error that is not the
// broker's.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return ""
}

// operation is what was tried, for the error that may come of it.
type operation struct {
	text  string
	vhost string
	// needs is what a user must have in the vhost, beyond access to it.
	needs string
	// policy is set for writes that need the tag policymaker.
	policy bool
}

func (c *Client) newError(op operation, class Class, detail string, cause error) *Error {
	text := op.text
	if op.vhost != "" {
		text += fmt.Sprintf(" of vhost %q", op.vhost)
	}
	return &Error{Class: class, Operation: text, Host: c.host, Detail: detail, cause: cause}
}

// ofStatus is the error for a status that needs no further questions.
func (c *Client) ofStatus(op operation, e *statusError) *Error {
	switch {
	case e.redirect != "":
		return c.newError(op, Unreachable, fmt.Sprintf("answered with a redirect to %s; set managementURL to where it leads", c.quote(e.redirect)), nil)
	case e.status < http.StatusBadRequest:
		return c.newError(op, Internal, fmt.Sprintf("answered with status %d, which the management API never does", e.status), nil)
	case e.status >= http.StatusInternalServerError, e.status == http.StatusTooManyRequests:
		return c.newError(op, Internal, fmt.Sprintf("the broker failed with status %d%s", e.status, c.said(e)), nil)
	}
	return c.newError(op, Rejected, fmt.Sprintf("the broker refused with status %d%s", e.status, c.said(e)), nil)
}

// said is RabbitMQ's own short reason.
func (c *Client) said(e *statusError) string {
	for _, text := range []string{e.reason, e.name} {
		if text != "" {
			return ": " + c.quote(text)
		}
	}
	return ""
}

// ofTransport is the error for a request that got no answer.
func (c *Client) ofTransport(op operation, err error) *Error {
	if u, ok := errors.AsType[*url.Error](err); ok { // its text repeats the address
		err = u.Err
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return c.newError(op, Unreachable, "its host name can't be resolved", dns)
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok { // without the address once more
		return c.newError(op, Unreachable, errno.Error(), errno)
	}
	return c.newError(op, Unreachable, c.quote(err.Error()), err)
}
