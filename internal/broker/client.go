/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

// Package broker does all I/O with RabbitMQ. It observes a vhost as a topology, carries
// out the steps of a plan, and says what went wrong in words for a status. Nothing
// outside of it knows the client library or the management API.
package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"
)

const defaultTimeout = 10 * time.Second

// Client speaks to one broker as one user. It is safe for concurrent use, and made to be
// kept: its connections are reused.
type Client struct {
	cfg      Config
	endpoint string
	host     string
	timeout  time.Duration
	base     *http.Transport
	// closed is set once nobody should keep anything for this client.
	closed atomic.Bool
}

// Option changes how a Client works.
type Option func(*Client)

// WithTimeout bounds each request, from dialling to the last byte of the answer.
func WithTimeout(d time.Duration) Option { return func(c *Client) { c.timeout = d } }

// NewClient returns a client, without asking the broker anything.
func NewClient(cfg Config, opts ...Option) (*Client, error) {
	u, err := cfg.parseURL()
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, endpoint: u.String(), host: u.Host, timeout: defaultTimeout, base: newTransport()}
	for _, o := range opts {
		o(c)
	}
	return c, nil
}

// Format keeps the password out of every verb.
func (c *Client) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, c.cfg.String()) }

// Close lets go of the idle connections. Requests under way go on, and who still holds
// the client may use it, but no Observer keeps anything for it from then on.
func (c *Client) Close() {
	c.closed.Store(true)
	c.base.CloseIdleConnections()
}

// About is what a broker says of itself.
type About struct {
	Version     string
	ClusterName string
}

// About asks the broker for its version and name.
func (c *Client) About(ctx context.Context) (About, error) {
	a, err := c.about(ctx)
	return a, c.explain(ctx, operation{text: "read the version"}, err)
}

func (c *Client) about(ctx context.Context) (About, error) {
	var o struct {
		Version     string `json:"rabbitmq_version"`
		ClusterName string `json:"cluster_name"`
	}
	err := c.get(ctx, "overview?columns=rabbitmq_version,cluster_name", &o)
	return About{Version: o.Version, ClusterName: o.ClusterName}, err
}

// get reads what rabbit-hole lacks or mistypes: it makes a number that is missing a zero.
func (c *Client) get(ctx context.Context, path string, into any) error {
	return c.do(ctx, http.MethodGet, path, nil, into)
}

func (c *Client) do(ctx context.Context, method, path string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.endpoint+"/api/"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.SetBasicAuth(c.cfg.Username, c.cfg.Password)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.transport(ctx).RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if into == nil {
		return nil
	}
	d := json.NewDecoder(res.Body)
	d.UseNumber() // whole numbers beyond 2^53 stay what they are
	if err := d.Decode(into); err != nil {
		return errUndecodable
	}
	return nil
}

// rabbitHole returns a client of the library for one call: its transport holds the
// context that the library knows nothing of.
func (c *Client) rabbitHole(ctx context.Context) (*rabbithole.Client, error) {
	return rabbithole.NewTLSClient(c.endpoint, c.cfg.Username, c.cfg.Password, c.transport(ctx))
}

// in is the path of a kind of object in a vhost.
func in(kind, vhost string) string { return kind + "/" + url.PathEscape(vhost) }
