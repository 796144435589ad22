/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

const (
	// idleTimeout is shorter than RabbitMQ waits for the next request on a connection, 5 s.
	idleTimeout = 4 * time.Second
	// maxAnswer bounds what one answer may take of memory.
	maxAnswer = 256 << 20
)

func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 4
	t.IdleConnTimeout = idleTimeout
	return t
}

// transport mends what rabbit-hole lacks: the context of the call, a timeout, reused
// connections, bodies that are closed, and an error that tells the status.
func (c *Client) transport(ctx context.Context) http.RoundTripper {
	return roundTrip(func(req *http.Request) (*http.Response, error) { return c.roundTrip(ctx, req) })
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func (c *Client) roundTrip(ctx context.Context, req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, errNoAnswer{after: c.timeout})
	defer cancel()
	req = req.Clone(ctx)
	req.Close = false
	req.Header.Set("User-Agent", "rabbitmq-retry-operator")
	// All that is sent can be sent again. The key, which is not sent itself, makes net/http
	// do so when the broker closes a reused connection at the same moment.
	req.Header["Idempotency-Key"] = nil

	res, err := c.base.RoundTrip(req)
	if err != nil {
		return nil, timeoutOr(ctx, err)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	_ = res.Body.Close()
	if err != nil {
		return nil, timeoutOr(ctx, err)
	}
	// A redirect is not followed: a PUT would arrive as a GET and look like a success.
	if res.StatusCode >= http.StatusMultipleChoices {
		return nil, readStatusError(res, body)
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res, nil
}

// errNoAnswer is the end of one request's time, not of the caller's.
type errNoAnswer struct{ after time.Duration }

func (e errNoAnswer) Error() string { return fmt.Sprintf("no answer within %s", e.after) }

func (e errNoAnswer) Is(target error) bool { return target == context.DeadlineExceeded }

func timeoutOr(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

var errUndecodable = errors.New("the answer is not the management API's; is managementURL right?")

// statusError is an answer other than a success.
type statusError struct {
	status int
	// name and reason are RabbitMQ's; empty when somebody else answered.
	name, reason string
	// redirect is scheme and host that a redirect leads to.
	redirect string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("status %d: %s: %s", e.status, e.name, e.reason)
}

func readStatusError(res *http.Response, body []byte) *statusError {
	e := &statusError{status: res.StatusCode}
	var said struct{ Error, Reason any }
	if json.Unmarshal(body, &said) == nil {
		e.name, _ = said.Error.(string)
		e.reason, _ = said.Reason.(string)
	}
	if u, err := url.Parse(res.Header.Get("Location")); err == nil && u.Host != "" {
		e.redirect = u.Scheme + "://" + u.Host
	}
	return e
}
