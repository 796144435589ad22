/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package model

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

const (
	// seedVariable replays the random scenarios of an earlier run.
	seedVariable = "MODEL_SEED"
	// countVariable makes more of them, for a long search.
	countVariable = "MODEL_RANDOM"
	randomCount   = 24
	// givenBroker is the sandbox's variable for a broker that runs already.
	givenBroker = "RABBITMQ_URL"
	// atOnce is how many scenarios are under way: most of their time is waiting.
	atOnce = 12
)

// TestModelAgainstBrokers runs each scenario through the model and on a real broker of
// each version, and compares in which queues copies end and as what.
func TestModelAgainstBrokers(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real brokers")
	}
	scenarios := all(t)
	for _, version := range versions() {
		t.Run("RabbitMQ "+version, func(t *testing.T) {
			n := startNode(t, version)
			started := time.Now()
			outcomes := n.runAll(t.Context(), scenarios)
			walked := time.Since(started)
			reports := n.reports(t.Context(), t, outcomes)
			n.tidy(t, outcomes)
			t.Logf("%d scenarios on RabbitMQ %s in %s, of which %s before the wait for statistics",
				len(scenarios), n.Version, time.Since(started).Round(time.Second), walked.Round(time.Second))
			for i, s := range scenarios {
				t.Run(s.name, func(t *testing.T) { outcomes[i].report(t, s, reports[outcomes[i].vhost]) })
			}
		})
	}
}

// versions are both, unless one broker is given.
func versions() []string {
	if os.Getenv(givenBroker) != "" {
		return []string{"given"}
	}
	return []string{"4.0", "4.3"}
}

// usualSeed makes two runs of the same code the same. Whoever searches for differences
// gives other seeds.
const usualSeed = 422887

func all(t *testing.T) []scenario {
	seed, err := number(seedVariable, usualSeed)
	if err != nil {
		t.Fatal(err)
	}
	count, err := number(countVariable, randomCount)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("seed of the random scenarios: %d; set %s to it for a replay", seed, seedVariable)
	scenarios := slices.Concat(wholeLadders(), brokenLadders(), cycles(), routings(), settings(), []scenario{policyKeys()}, random(seed, int(count)))
	names := map[string]bool{}
	for _, s := range scenarios {
		if names[s.name] {
			t.Fatalf("two scenarios are named %q", s.name)
		}
		names[s.name] = true
	}
	return scenarios
}

func number(variable string, otherwise uint64) (uint64, error) {
	raw := os.Getenv(variable)
	if raw == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseUint(raw, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", variable, err)
	}
	return n, nil
}

func startNode(t *testing.T, version string) *node {
	t.Helper()
	b, err := sandbox.StartBroker(t.Context(), t.Logf, version)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
	})
	n, err := newNode(b)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// runAll runs the scenarios side by side, each in a vhost of its own.
func (n *node) runAll(ctx context.Context, scenarios []scenario) []*outcome {
	outcomes := make([]*outcome, len(scenarios))
	sideBySide(len(scenarios), func(i int) {
		outcomes[i] = n.run(ctx, fmt.Sprintf("model-%03d-%d", i, os.Getpid()), scenarios[i])
	})
	return outcomes
}

func sideBySide(n int, do func(int)) {
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	wg.Wait()
}

// tidy leaves a broker that goes on without the vhosts.
func (n *node) tidy(t *testing.T, outcomes []*outcome) {
	if os.Getenv(givenBroker) == "" {
		return
	}
	sideBySide(len(outcomes), func(i int) {
		if err := n.deleteVhost(t.Context(), outcomes[i].vhost); err != nil {
			t.Errorf("delete vhost %s: %v", outcomes[i].vhost, err)
		}
	})
}

// freshness is how long statistics may take: they are written down every 5 s, and a quorum
// queue's tick comes on top.
const freshness = time.Minute

// reported is what the broker says of its queues, by vhost: how many dead letters are
// pending where there are any, and which policies are in effect.
type reported struct {
	pending  map[string]int64
	policies map[string]string
}

func (r reported) agrees(w *world) bool {
	return maps.Equal(r.pending, w.stalled) && maps.Equal(r.policies, w.policies())
}

// policies are those that the model finds in effect, as text, by queue.
func (w *world) policies() map[string]string {
	out := map[string]string{}
	operators := topology.Topology{Policies: w.topology.OperatorPolicies}
	for name, q := range w.topology.Queues {
		user, _ := w.topology.InEffect(q)
		operator, _ := operators.InEffect(q)
		out[name] = user.Name + "/" + operator.Name
	}
	return out
}

// reports waits until the broker tells of every queue what the model says, and returns what
// it tells at last.
func (n *node) reports(ctx context.Context, t *testing.T, outcomes []*outcome) map[string]reported {
	t.Helper()
	if err := n.passTicks(ctx); err != nil {
		t.Errorf("wait for fresh statistics: %v", err)
	}
	var last map[string]reported
	waiting, cancel := context.WithTimeout(ctx, freshness)
	defer cancel()
	err := sandbox.Poll(waiting, time.Second, func() (bool, error) {
		var err error
		if last, err = n.report(ctx); err != nil {
			return false, err
		}
		return !slices.ContainsFunc(outcomes, func(o *outcome) bool { return o.ok() && !last[o.vhost].agrees(o.world) }), nil
	})
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("look at the queues: %v", err)
	}
	return last
}

// passTicks returns when every queue's statistics are younger than the call: a queue of its
// own has shown two changes, one after the other, and all queues tell theirs as often.
func (n *node) passTicks(ctx context.Context) error {
	vhost := fmt.Sprintf("model-clock-%d", os.Getpid())
	if err := n.createVhost(ctx, vhost); err != nil {
		return err
	}
	if err := n.declare(ctx, vhost, build(quorum("clock", nil))); err != nil {
		return err
	}
	c, err := dial(n.AMQPURL(vhost))
	if err != nil {
		return err
	}
	defer func() { _ = c.conn.Close() }()
	ctx, cancel := context.WithTimeout(ctx, freshness)
	defer cancel()
	for tick := int64(1); tick <= 2; tick++ {
		if err := c.put(ctx, "clock", sentinel); err != nil {
			return err
		}
		err := sandbox.Poll(ctx, 250*time.Millisecond, func() (bool, error) {
			observed, err := n.observe(ctx, vhost)
			messages := observed.Queues["clock"].State
			return err == nil && messages != nil && messages.Messages != nil && *messages.Messages == tick, err
		})
		if err != nil {
			return err
		}
	}
	return n.deleteVhost(ctx, vhost)
}

func (n *node) report(ctx context.Context) (map[string]reported, error) {
	var queues []struct {
		Name, Vhost    string
		Pending        int64  `json:"messages_dlx"`
		Policy         string `json:"policy"`
		OperatorPolicy string `json:"operator_policy"`
	}
	if err := n.do(ctx, http.MethodGet, "/queues?columns=name,vhost,messages_dlx,policy,operator_policy", nil, &queues); err != nil {
		return nil, err
	}
	out := map[string]reported{}
	for _, q := range queues {
		r, ok := out[q.Vhost]
		if !ok {
			r = reported{pending: map[string]int64{}, policies: map[string]string{}}
			out[q.Vhost] = r
		}
		if q.Pending > 0 {
			r.pending[q.Name] = q.Pending
		}
		r.policies[q.Name] = q.Policy + "/" + q.OperatorPolicy
	}
	return out, nil
}

// ok reports that the scenario ran to its end as the model says.
func (o *outcome) ok() bool { return o.err == nil && len(o.differences) == 0 }

func (o *outcome) report(t *testing.T, s scenario, r reported) {
	t.Helper()
	if o.err != nil {
		t.Error(o.err)
	}
	if o.ok() && !r.agrees(o.world) {
		o.differ("pending dead letters are %v, the model has %v; losses in the model: %q\npolicies in effect are %v, the model has %v",
			r.pending, o.world.stalled, o.world.losses, r.policies, o.world.policies())
	}
	for _, d := range o.differences {
		t.Error(d)
	}
	if t.Failed() {
		t.Logf("message %+v\nhistory %v\n%s", s.message, s.history, picture(o.world))
	}
}

// picture is the topology in words, to replay a failure by hand.
func picture(w *world) string {
	if w == nil {
		return ""
	}
	var sb strings.Builder
	for _, e := range topology.Sorted(w.topology.Exchanges) {
		if e.Name != "" && !strings.HasPrefix(e.Name, "amq.") {
			fmt.Fprintf(&sb, "exchange %s (%s) %v\n", e.Name, e.Type, e.Arguments)
		}
	}
	for _, q := range topology.Sorted(w.topology.Queues) {
		fmt.Fprintf(&sb, "queue %s (%s) %v\n", q.Name, q.Type, q.Arguments)
	}
	for _, b := range w.topology.SortedBindings() {
		fmt.Fprintf(&sb, "binding %s -> %s by %q %v\n", b.Source, b.Destination, b.RoutingKey, b.Arguments)
	}
	for _, p := range topology.Sorted(w.topology.Policies) {
		fmt.Fprintf(&sb, "policy %+v\n", p)
	}
	for _, p := range topology.Sorted(w.topology.OperatorPolicies) {
		fmt.Fprintf(&sb, "operator policy %+v\n", p)
	}
	return sb.String()
}
