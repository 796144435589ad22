/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package broker

import (
	"context"
	"maps"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	defaultInterval = 15 * time.Second
	// gapIntervals is how many intervals may lie between two looks before what the queues
	// did meanwhile counts as unknown.
	gapIntervals = 4
	// minGap keeps a short interval, on a machine that can't keep up with it, from losing
	// the history again and again: a deletion that needs it would never end.
	minGap = time.Minute
)

// Observer shares snapshots: one for each connection and vhost, at most one in each poll
// interval however many ask, and few requests to a broker that fails.
type Observer struct {
	interval time.Duration
	now      func() time.Time
	jitter   func() float64

	mu      sync.Mutex
	clients map[*Client]*observedClient
}

// observedClient is guarded by the Observer's mutex, as is all below it.
type observedClient struct {
	vhosts map[string]*observedVhost
	// backoff is for what fails whatever the vhost.
	backoff backoff
}

type observedVhost struct {
	last    *Snapshot
	history history
	backoff backoff
	// failedAt is the beginning of the look that the backoff is about.
	failedAt time.Time
	flight   *flight
	// lastAsked is when somebody last wanted to know.
	lastAsked time.Time
}

// flight is a look under way, for all who wait for it.
type flight struct {
	started  time.Time
	done     chan struct{}
	snapshot Snapshot
	err      error
}

// ObserverOption changes how an Observer works.
type ObserverOption func(*Observer)

// WithClock sets the clock by which snapshots age and backoffs end.
func WithClock(now func() time.Time) ObserverOption { return func(o *Observer) { o.now = now } }

// NewObserver returns an Observer that looks once in an interval; 0 is the default, 15 s.
func NewObserver(interval time.Duration, opts ...ObserverOption) *Observer {
	if interval <= 0 {
		interval = defaultInterval
	}
	o := &Observer{interval: interval, now: time.Now, jitter: rand.Float64, clients: map[*Client]*observedClient{}}
	for _, opt := range opts {
		opt(o)
	}
	return o
}

// Snapshot returns the newest look at the vhost, if it was taken at or after notBefore
// and is not older than the interval; else it takes a new one. Who asks meanwhile waits
// for the same. While a failure is remembered it returns that, without a request. For a
// client that is closed it looks each time and remembers nothing.
func (o *Observer) Snapshot(ctx context.Context, c *Client, vhost string, notBefore time.Time) (Snapshot, error) {
	for {
		s, f, err := o.lookUp(ctx, c, vhost, notBefore)
		if err != nil {
			return Snapshot{}, err
		}
		if s != nil {
			return *s, nil
		}
		if f == nil {
			return c.Observe(ctx, vhost)
		}
		select {
		case <-ctx.Done():
			return Snapshot{}, c.ofTransport(operation{text: "observe the objects", vhost: vhost}, ctx.Err())
		case <-f.done:
		}
		if !f.started.Before(notBefore) {
			return f.snapshot, f.err
		}
	}
}

// lookUp returns a snapshot, an error, or the look to wait for; none of them for a client
// that is closed. Forget closes under the same lock, so that no entry comes back after it.
func (o *Observer) lookUp(ctx context.Context, c *Client, vhost string, notBefore time.Time) (*Snapshot, *flight, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c.closed.Load() {
		return nil, nil, nil
	}
	client, v := o.entry(c, vhost)
	now := o.now()
	v.lastAsked = now
	switch {
	case client.backoff.active(now):
		return nil, nil, client.backoff.err
	case v.backoff.active(now) && !v.failedAt.Before(notBefore):
		return nil, nil, v.backoff.err
	case v.last != nil && !v.last.TakenAt.Before(notBefore) && now.Sub(v.last.TakenAt) < o.interval:
		return v.last, nil, nil
	case v.flight == nil:
		o.takeOff(ctx, c, client, vhost, v)
	}
	return nil, v.flight, nil
}

func (o *Observer) entry(c *Client, vhost string) (*observedClient, *observedVhost) {
	client := o.clients[c]
	if client == nil {
		client = &observedClient{vhosts: map[string]*observedVhost{}}
		o.clients[c] = client
	}
	v := client.vhosts[vhost]
	if v == nil {
		v = &observedVhost{}
		client.vhosts[vhost] = v
	}
	return client, v
}

// takeOff starts a look that does not end with the context of the caller who happened
// to be first. Each request of it has its own time.
func (o *Observer) takeOff(ctx context.Context, c *Client, client *observedClient, vhost string, v *observedVhost) {
	f := &flight{started: o.now(), done: make(chan struct{})}
	v.flight = f
	ctx = context.WithoutCancel(ctx)
	go func() {
		s, err := c.Observe(ctx, vhost)
		o.land(client, v, f, s, err)
	}()
}

func (o *Observer) land(client *observedClient, v *observedVhost, f *flight, s Snapshot, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer close(f.done)
	v.flight, v.lastAsked = nil, o.now() // who has waited has asked until now
	o.prune()
	if f.err = err; err != nil {
		o.failed(client, v, f)
		return
	}
	v.history = v.history.next(s, o.maxGap())
	v.history.tell(s.Topology)
	f.snapshot = s
	v.last, v.backoff, client.backoff = &f.snapshot, backoff{}, backoff{}
}

// prune drops the vhosts that nobody asks for any more. It loses nothing: the history of
// one that is asked for again would begin anew all the same.
func (o *Observer) prune() {
	now := o.now()
	for _, client := range o.clients {
		maps.DeleteFunc(client.vhosts, func(_ string, v *observedVhost) bool {
			return v.flight == nil && now.Sub(v.wanted()) > o.maxGap()
		})
	}
}

// wanted is the last moment at which somebody has asked, or asks again when a backoff ends.
func (v *observedVhost) wanted() time.Time {
	if v.backoff.until.After(v.lastAsked) {
		return v.backoff.until
	}
	return v.lastAsked
}

// failed remembers a failure: for all vhosts what none of them can cause, for one vhost
// the rest, so that a vhost that the broker can't list does not blind the others.
func (o *Observer) failed(client *observedClient, v *observedVhost, f *flight) {
	now := o.now()
	switch ClassOf(f.err) {
	case Unreachable, AuthenticationFailed:
		if !client.backoff.active(now) { // looks at several vhosts that fail together fail once
			client.backoff = client.backoff.next(f.err, now, o.interval, o.jitter())
		}
	default:
		v.backoff = v.backoff.next(f.err, now, o.interval, o.jitter())
		v.failedAt = f.started
	}
}

// maxGap is how long a vhost may go unobserved before its history begins anew.
func (o *Observer) maxGap() time.Duration { return max(gapIntervals*o.interval, minGap) }

// Next returns when the next look at the vhost is due: the past when none was taken.
func (o *Observer) Next(c *Client, vhost string) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	client := o.clients[c]
	if client == nil {
		return time.Time{}
	}
	now := o.now()
	v := client.vhosts[vhost]
	switch {
	case client.backoff.active(now):
		return client.backoff.until
	case v == nil:
		return time.Time{}
	case v.backoff.active(now):
		return v.backoff.until
	case v.last != nil:
		return v.last.TakenAt.Add(o.interval)
	}
	return time.Time{}
}

// Forget drops all that is known of a connection that is gone or replaced, and closes its
// client. Looks under way end by themselves: who waits for one has asked a good question.
func (o *Observer) Forget(c *Client) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.clients, c)
	c.Close()
}
