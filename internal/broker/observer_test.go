/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package broker

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/plan"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

// clock moves by hand and never falls behind the snapshots' own.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

func newTestObserver() (*Observer, *clock) {
	c := &clock{}
	o := NewObserver(time.Minute, WithClock(c.now))
	o.jitter = func() float64 { return 0.5 }
	return o, c
}

func TestFiftyCallersShareOneLook(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *sandbox.Broker) {
		g := NewWithT(t)
		vhost := newVhost(t, b, "shared")
		p := newProxy(t, b, "")
		c := clientOf(t, p.config(b))
		o, clock := newTestObserver()
		g.Expect(o.Next(c, vhost)).To(BeZero())

		var wg sync.WaitGroup
		snapshots := make([]Snapshot, 50)
		for i := range snapshots {
			wg.Go(func() {
				var err error
				if snapshots[i], err = o.Snapshot(t.Context(), c, vhost, time.Time{}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		g.Expect(p.requests.Load()).To(BeEquivalentTo(6))
		for _, s := range snapshots {
			g.Expect(s.TakenAt).To(Equal(snapshots[0].TakenAt))
		}
		g.Expect(o.Next(c, vhost)).To(Equal(snapshots[0].TakenAt.Add(time.Minute)))

		written := o.now()
		s, err := o.Snapshot(t.Context(), c, vhost, written)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.TakenAt).To(BeTemporally(">=", written))
		g.Expect(p.requests.Load()).To(BeEquivalentTo(12), "a look from before a write is not good enough after it")

		clock.advance(59 * time.Second)
		_, err = o.Snapshot(t.Context(), c, vhost, written)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(p.requests.Load()).To(BeEquivalentTo(12))
		clock.advance(2 * time.Second)
		_, err = o.Snapshot(t.Context(), c, vhost, written)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(p.requests.Load()).To(BeEquivalentTo(18))
	})
}

func TestALookUnderWayIsNotGoodEnoughForALaterWrite(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *sandbox.Broker) {
		g := NewWithT(t)
		vhost := newVhost(t, b, "under way")
		p := newProxy(t, b, "")
		arrived, release := make(chan struct{}), make(chan struct{})
		var once sync.Once
		p.interfere(func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/bindings/") { // all else has been seen by then
				once.Do(func() { close(arrived); <-release })
			}
			return false
		})
		c := clientOf(t, p.config(b))
		o, _ := newTestObserver()
		first := make(chan error, 1)
		go func() { _, err := o.Snapshot(t.Context(), c, vhost, time.Time{}); first <- err }()
		<-arrived
		newQueue(t, b, vhost, "q", topology.Classic)
		second := make(chan Snapshot, 1)
		written := o.now()
		go func() {
			s, err := o.Snapshot(t.Context(), c, vhost, written)
			if err != nil {
				t.Error(err)
			}
			second <- s
		}()
		close(release)
		g.Expect(<-first).NotTo(HaveOccurred())
		g.Expect((<-second).Topology.Queues).To(HaveKey("q"))
	})
}

func TestACallerWhoGivesUpDoesNotEndTheLookOfOthers(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *sandbox.Broker) {
		g := NewWithT(t)
		vhost := newVhost(t, b, "gives up")
		p := newProxy(t, b, "")
		arrived, release := make(chan struct{}), make(chan struct{})
		var once sync.Once
		p.interfere(func(http.ResponseWriter, *http.Request) bool {
			once.Do(func() { close(arrived); <-release })
			return false
		})
		c := clientOf(t, p.config(b))
		o, _ := newTestObserver()
		ctx, cancel := context.WithCancel(t.Context())
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { _, err := o.Snapshot(ctx, c, vhost, time.Time{}); first <- err }()
		<-arrived
		cancel()
		err := <-first
		g.Expect(errors.Is(err, context.Canceled)).To(BeTrue())
		go func() { _, err := o.Snapshot(t.Context(), c, vhost, time.Time{}); second <- err }()
		close(release)
		g.Expect(<-second).NotTo(HaveOccurred())
		g.Expect(p.requests.Load()).To(BeEquivalentTo(6))
	})
}

func TestALookThatIsForgottenEndsByItself(t *testing.T) {
	g := NewWithT(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	c := clientOf(t, fakeBroker(t, func(http.ResponseWriter, *http.Request) bool {
		once.Do(func() { close(arrived); <-release })
		return false
	}))
	o, _ := newTestObserver()
	waiting := make(chan error, 1)
	go func() { _, err := o.Snapshot(t.Context(), c, "/", time.Time{}); waiting <- err }()
	<-arrived
	o.Forget(c)
	g.Expect(o.clients).To(BeEmpty())
	g.Expect(o.Next(c, "/")).To(BeZero())
	close(release)
	g.Expect(<-waiting).NotTo(HaveOccurred(), "no waiter sees that the look was forgotten")
	g.Expect(o.clients).To(BeEmpty())
}

func TestAClosedClientLooksAndLeavesNothingBehind(t *testing.T) {
	g := NewWithT(t)
	var requests atomic.Int64
	c := clientOf(t, fakeBroker(t, func(w http.ResponseWriter, _ *http.Request) bool {
		requests.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}))
	o, _ := newTestObserver()
	o.Forget(c)
	for want := range 3 {
		_, err := o.Snapshot(t.Context(), c, "/", time.Time{})
		g.Expect(ClassOf(err)).To(Equal(Internal))
		g.Expect(requests.Load()).To(BeEquivalentTo(want+1), "no backoff answers")
	}
	g.Expect(o.clients).To(BeEmpty())
	g.Expect(o.Next(c, "/")).To(BeZero())
}

func TestAVhostThatNobodyAsksForIsDropped(t *testing.T) {
	g := NewWithT(t)
	c := clientOf(t, fakeBroker(t, func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/failing") {
			w.WriteHeader(http.StatusInternalServerError)
			return true
		}
		return false
	}))
	o, clock := newTestObserver()
	look := func(vhost string) { _, _ = o.Snapshot(t.Context(), c, vhost, o.now()) }
	kept := func() []string { return slices.Sorted(maps.Keys(o.clients[c].vhosts)) }

	look("quiet")
	for range 5 { // the backoff is at 4 intervals then
		look("failing")
		clock.advance(5 * time.Minute)
		look("failing")
	}
	look("asked")
	g.Expect(kept()).To(Equal([]string{"asked", "failing"}))
	o.clients[c].vhosts["flying"] = &observedVhost{flight: &flight{}}
	clock.advance(4 * time.Minute)
	look("asked")
	g.Expect(kept()).To(Equal([]string{"asked", "failing", "flying"}), "just within the time")
	clock.advance(3 * time.Minute)
	look("asked")
	g.Expect(kept()).To(Equal([]string{"asked", "failing", "flying"}), "who waits for a backoff to end will ask")
	clock.advance(3 * time.Minute)
	look("asked")
	g.Expect(kept()).To(Equal([]string{"asked", "flying"}))

	another := clientOf(t, fakeBroker(t, nil))
	clock.advance(5 * time.Minute)
	_, err := o.Snapshot(t.Context(), another, "/", time.Time{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kept()).To(Equal([]string{"flying"}), "a look over any connection clears up")
}

func TestAVhostThatFailsDoesNotBlindTheOthers(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *sandbox.Broker) {
		g := NewWithT(t)
		vhost := newVhost(t, b, "healthy")
		p := newProxy(t, b, "")
		c := clientOf(t, p.config(b))
		o, clock := newTestObserver()
		_, err := o.Snapshot(t.Context(), c, "missing", time.Time{})
		g.Expect(ClassOf(err)).To(Equal(VhostNotFound))
		asked := p.requests.Load()
		_, err = o.Snapshot(t.Context(), c, "missing", time.Time{})
		g.Expect(ClassOf(err)).To(Equal(VhostNotFound))
		g.Expect(p.requests.Load()).To(Equal(asked))
		g.Expect(o.Next(c, "missing")).To(BeTemporally("~", o.now().Add(time.Minute), time.Second*10))

		_, err = o.Snapshot(t.Context(), c, vhost, time.Time{})
		g.Expect(err).NotTo(HaveOccurred())
		clock.advance(2 * time.Minute)
		newVhost(t, b, "missing")
		_, err = o.Snapshot(t.Context(), c, "missing", time.Time{})
		g.Expect(err).NotTo(HaveOccurred())
	})
}

// TestZBrokerDownAndBack kills the brokers, so it comes last.
func TestZBrokerDownAndBack(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *sandbox.Broker) {
		g := NewWithT(t)
		vhost := newVhost(t, b, "down and back")
		c := clientOf(t, adminConfig(b))
		o, clock := newTestObserver()
		_, err := o.Snapshot(t.Context(), c, vhost, time.Time{})
		g.Expect(err).NotTo(HaveOccurred())

		if err := b.Kill(); errors.Is(err, sandbox.ErrUnsupported) {
			t.Skip(err)
		} else if err != nil {
			t.Fatal(err)
		}
		defer func() { g.Expect(b.Start(context.Background())).To(Succeed()) }()
		for _, wait := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 4 * time.Minute} {
			before := o.now()
			_, err = o.Snapshot(t.Context(), c, vhost, before)
			g.Expect(ClassOf(err)).To(Equal(Unreachable))
			g.Expect(err.Error()).To(MatchRegexp(`^observe the objects of vhost "down and back" on %s: connection (refused|reset by peer)`, c.host))
			g.Expect(o.Next(c, vhost)).To(BeTemporally("~", before.Add(wait), 10*time.Second))
			g.Expect(o.Next(c, "another")).To(Equal(o.Next(c, vhost)), "a dead broker is dead for every vhost")
			_, again := o.Snapshot(t.Context(), c, "another", o.now())
			g.Expect(again).To(BeIdenticalTo(err), "answered without a request")
			clock.advance(wait + 11*time.Second)
		}
		r := c.Apply(t.Context(), vhost, []plan.Step{{Action: plan.DeleteQueue, Queue: topology.Queue{Name: "q"}}})
		g.Expect(ClassOf(r.Err)).To(Equal(Unreachable))

		g.Expect(b.Start(t.Context())).To(Succeed())
		// A broker that has just begun to answer can still fail for a moment.
		g.Eventually(func() error {
			clock.advance(5 * time.Minute)
			_, err := o.Snapshot(t.Context(), c, vhost, o.now())
			return err
		}).WithTimeout(30 * time.Second).WithPolling(200 * time.Millisecond).Should(Succeed())
		g.Expect(o.clients[c].backoff.err).NotTo(HaveOccurred())
	})
}
