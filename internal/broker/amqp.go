/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package broker

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// amqpTimeout bounds one attempt to log in over AMQP.
const amqpTimeout = 10 * time.Second

// CheckAMQP logs in over AMQP and out again. The error names the host and never the
// credentials.
func CheckAMQP(ctx context.Context, address, username, password, vhost string) error {
	u, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("amqpURL can't be read; give it as amqp://host:port")
	}
	config := amqp.Config{
		Vhost:      vhost,
		SASL:       []amqp.Authentication{&amqp.PlainAuth{Username: username, Password: password}},
		Properties: amqp.Table{"connection_name": "rabbitmq-retry-operator check"},
		Dial: func(network, addr string) (net.Conn, error) {
			return dialAMQP(ctx, network, addr)
		},
	}
	conn, err := amqp.DialConfig(address, config)
	if err != nil {
		return fmt.Errorf("log in to %s over AMQP with vhost %q: %w", u.Host, vhost, err)
	}
	if err := conn.Close(); err != nil {
		return fmt.Errorf("close the AMQP connection to %s: %w", u.Host, err)
	}
	return nil
}

// dialAMQP connects with a deadline for the handshake; the client lifts it when it is open.
func dialAMQP(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: amqpTimeout}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(amqpTimeout)); err != nil {
		return nil, err
	}
	return conn, nil
}
