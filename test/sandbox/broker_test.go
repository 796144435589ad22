/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// TestBrokersSideBySide starts both versions, kills one and finds its data again.
func TestBrokersSideBySide(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real brokers")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	brokers := startBoth(ctx, t)
	for _, b := range brokers {
		publish(ctx, t, b)
	}
	for version, b := range brokers {
		if out, err := b.Rabbitmqctl(ctx, "status"); err != nil || !strings.Contains(out, "RabbitMQ version: "+version) {
			t.Errorf("rabbitmqctl status of %s: %v\n%s", version, err, out)
		}
	}

	killed, other := brokers["4.3"], brokers["4.0"]
	if err := killed.Kill(); err != nil {
		t.Fatal(err)
	}
	if killed.Alive(ctx) {
		t.Error("the killed broker is alive")
	}
	if err := other.probe(ctx); err != nil {
		t.Errorf("the other broker no longer answers: %v", err)
	}
	restart(ctx, t, killed)
	wantMessage(t, killed)

	if err := other.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	restart(ctx, t, other)
	wantMessage(t, other)

	attached, err := AttachBroker(t.Logf, other.State())
	if err != nil {
		t.Fatal(err)
	}
	if err := attached.probe(ctx); err != nil || !attached.Alive(ctx) {
		t.Errorf("the broker that was taken over does not answer: %v", err)
	}
	for _, b := range brokers {
		stopLeavesNothing(ctx, t, b)
	}
}

func startBoth(ctx context.Context, t *testing.T) map[string]*Broker {
	var (
		mu      sync.Mutex
		wg      sync.WaitGroup
		brokers = map[string]*Broker{}
	)
	for _, version := range []string{"4.0", "4.3"} {
		wg.Go(func() {
			started := time.Now()
			b, err := StartBroker(ctx, t.Logf, version)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { _ = b.Stop() })
			t.Logf("RabbitMQ %s answered after %s", version, time.Since(started))
			mu.Lock()
			defer mu.Unlock()
			brokers[version] = b
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return brokers
}

func restart(ctx context.Context, t *testing.T, b *Broker) {
	t.Helper()
	started := time.Now()
	if err := b.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("RabbitMQ %s answered again after %s", b.Version, time.Since(started))
}

func openChannel(t *testing.T, b *Broker) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial(b.AMQPURL("/"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

func publish(ctx context.Context, t *testing.T, b *Broker) {
	t.Helper()
	ch := openChannel(t, b)
	args := amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeQuorum}
	if _, err := ch.QueueDeclare("kept", true, false, false, false, args); err != nil {
		t.Fatal(err)
	}
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	message := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("hello")}
	confirm, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", "kept", true, false, message)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := confirm.WaitContext(ctx); err != nil || !ok {
		t.Fatalf("the broker did not confirm: %v", err)
	}
}

func wantMessage(t *testing.T, b *Broker) {
	t.Helper()
	ch := openChannel(t, b)
	var body string
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	// A quorum queue elects its leader after the broker answers.
	err := Poll(ctx, 100*time.Millisecond, func() (bool, error) {
		message, ok, err := ch.Get("kept", true)
		body = string(message.Body)
		return ok, err
	})
	if err != nil || body != "hello" {
		t.Errorf("message after the restart: %q, %v", body, err)
	}
}

func stopLeavesNothing(ctx context.Context, t *testing.T, b *Broker) {
	t.Helper()
	path := b.State().Path
	for range 2 {
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
	}
	if b.Alive(ctx) {
		t.Error("the stopped broker is alive")
	}
	if _, err := os.Stat(path); b.State().Kind == kindChroot && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", path, err)
	}
}
