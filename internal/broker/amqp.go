/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// amqpTimeout bounds one attempt to log in over AMQP, from dialling to logging out.
const amqpTimeout = 10 * time.Second

// CheckAMQP logs in over AMQP and out again, within 10 s or what the context leaves.
// Without a vhost it checks the login alone: that "/" is closed to the user is no failure
// then. The error has a Class and names the host, never the password.
func CheckAMQP(ctx context.Context, address, username, password, vhost string) error {
	check := amqpCheck{
		// A client that asks nothing: it makes the errors, and keeps the password out of them.
		Client: &Client{cfg: Config{Username: username, Password: password}},
		vhost:  vhost,
		op:     operation{text: "log in over AMQP"},
	}
	if vhost != "" {
		check.op.text = fmt.Sprintf("log in over AMQP to vhost %q", vhost)
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		check.host = "amqpURL" // the address itself may have credentials
		return check.newError(check.op, AMQPUnreachable, "it is not of the form amqp(s)://host:port", nil)
	}
	check.host = u.Host
	ctx, cancel := context.WithTimeoutCause(ctx, amqpTimeout, errNoAnswer{after: amqpTimeout})
	defer cancel()
	if err := check.login(ctx, u); err != nil {
		// The end of the time shows as all kinds of failures, even as a wrong password.
		return check.explainAMQP(timeoutOr(ctx, err))
	}
	return nil
}

type amqpCheck struct {
	*Client

	vhost string
	op    operation
}

func (c *amqpCheck) login(ctx context.Context, u *url.URL) error {
	config := amqp.Config{
		Vhost:      c.vhost,
		SASL:       []amqp.Authentication{&amqp.PlainAuth{Username: c.cfg.Username, Password: c.cfg.Password}},
		Properties: amqp.Table{"connection_name": "rabbitmq-retry-operator check"},
		Dial:       func(network, addr string) (net.Conn, error) { return dialAMQP(ctx, network, addr) },
	}
	if config.Vhost == "" {
		config.Vhost = "/"
	}
	// Without the rest of the address, which would set other things than where to.
	conn, err := amqp.DialConfig((&url.URL{Scheme: u.Scheme, Host: u.Host}).String(), config)
	if err != nil {
		return err
	}
	_ = conn.Close() // the login has worked, however it ends
	return nil
}

// dialAMQP returns a connection that closes with the context: the library knows no
// context, and its own deadlines leave out TLS and logging out.
func dialAMQP(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	return conn, nil
}

// explainAMQP tells a login that was refused from a conversation that failed.
func (c *amqpCheck) explainAMQP(err error) error {
	said, ok := errors.AsType[*amqp.Error](err)
	switch {
	case !ok:
		e := c.ofTransport(c.op, err)
		e.Class = AMQPUnreachable
		return e
	// What the library says when the broker closes the connection in place of an answer to
	// the password. Its like for the vhost, with the same code, stands for no refusal.
	case errors.Is(err, amqp.ErrCredentials), said.Server && said.Code == amqp.AccessRefused:
		return c.newError(c.op, AuthenticationFailed, fmt.Sprintf("the broker does not accept user %q with this password", c.cfg.Username), nil)
	case said.Server && said.Code == amqp.NotAllowed:
		return c.explainNotAllowed(said)
	case said.Server:
		return c.newError(c.op, AMQPUnreachable, "the broker refused: "+c.quote(said.Reason), nil)
	}
	return c.newError(c.op, AMQPUnreachable, fmt.Sprintf("the handshake failed: %s; is amqpURL right?", c.quote(said.Reason)), nil)
}

// explainNotAllowed is about what comes after the password: the vhost.
func (c *amqpCheck) explainNotAllowed(said *amqp.Error) error {
	if c.vhost == "" {
		return nil
	}
	return c.newError(c.op, PermissionDenied, fmt.Sprintf("the broker does not let user %q into the vhost: %s", c.cfg.Username, c.quote(said.Reason)), nil)
}
