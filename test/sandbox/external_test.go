/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package sandbox

import (
	"context"
	"strings"
	"testing"
)

func TestReadOverview(t *testing.T) {
	const body = `{"rabbitmq_version":"4.3.6","listeners":[{"protocol":"clustering","port":25672},{"protocol":"amqp","port":5672}]}`
	var e External
	if err := e.readOverview([]byte(body), "broker.test", ""); err != nil {
		t.Fatal(err)
	}
	if e.Version != "4.3" || e.AMQPAddress != "broker.test:5672" {
		t.Errorf("got %+v", e)
	}
	if err := e.readOverview([]byte(body), "broker.test", "other.test:5673"); err != nil || e.AMQPAddress != "other.test:5673" {
		t.Errorf("got %+v, %v", e, err)
	}
	if err := e.readOverview([]byte(`{}`), "broker.test", ""); err == nil {
		t.Error("a broker without AMQP was accepted")
	}
}

func TestErrorsShowNoPassword(t *testing.T) {
	for _, raw := range []string{"http://user:hunter2@host:bad port", "http://user:hunter2@127.0.0.1:1"} {
		_, err := findExternal(context.Background(), raw)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("got %v", err)
		}
	}
}

func TestAMQPURLEscapes(t *testing.T) {
	b := &Broker{Username: "a@b", Password: "p/w:", amqpAddress: "127.0.0.1:1"}
	if got, want := b.AMQPURL("/"), "amqp://a%40b:p%2Fw%3A@127.0.0.1:1/%2F"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
