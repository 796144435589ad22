/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// brokerTimeout is how long a broker may take to answer: seconds on an idle machine,
// but tests start several at once on two cores.
const brokerTimeout = 3 * time.Minute

// waitReady waits until the management API and AMQP both answer.
func (b *Broker) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, brokerTimeout)
	defer cancel()
	started := time.Now()
	said := started
	var last error
	err := Poll(ctx, 100*time.Millisecond, func() (bool, error) {
		if last = b.probe(ctx); last == nil {
			return true, nil
		}
		if !b.runner.alive(ctx) {
			return false, errors.New("the broker ended")
		}
		if time.Since(said) >= progressEvery {
			said = time.Now()
			b.log("Waiting for RabbitMQ %s (%s) ...", b.Version, elapsed(started))
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the broker: %w (last answer: %s); its log ends with:\n%s",
			err, fmt.Sprint(last), b.runner.logTail(context.WithoutCancel(ctx)))
	}
	return nil
}

func (b *Broker) probe(ctx context.Context) error {
	if _, err := getManagement(ctx, b.ManagementURL, "/api/whoami", b.Username, b.Password); err != nil {
		return err
	}
	conn, err := amqp.DialConfig(b.AMQPURL("/"), amqp.Config{Dial: func(network, address string) (net.Conn, error) {
		return dialAMQP(ctx, network, address)
	}})
	if err != nil {
		return fmt.Errorf("connect to AMQP: %w", err)
	}
	return conn.Close()
}

func dialAMQP(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: 5 * time.Second}
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	// The handshake has no deadline of its own; the client lifts this one after it.
	return conn, conn.SetDeadline(time.Now().Add(10 * time.Second))
}

func getManagement(ctx context.Context, base, path, username, password string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
	if err != nil {
		return nil, errors.New("ask the management API: its address is no URL")
	}
	req.SetBasicAuth(username, password)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the management API: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, fmt.Errorf("ask the management API: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask the management API for %s: %s", path, res.Status)
	}
	return body, nil
}
