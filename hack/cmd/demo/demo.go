/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	messages     = 12
	publishEvery = 200 * time.Millisecond

	readyTimeout  = time.Minute
	clearTimeout  = 20 * time.Second
	parkTimeout   = 20 * time.Second
	kubectlSlack  = 30 * time.Second
	climbSlack    = 30 * time.Second
	statusTimeout = 2 * time.Minute // a status in which only numbers change is written once a minute
)

// demo is one run.
type demo struct {
	cluster *cluster
	screen  *screen

	bus     *bus
	made    made
	ladder  ladder
	script  []message
	journal *journal
	depths  map[string]int
	publish confirms
}

// play shows everything and checks it.
func (d *demo) play(ctx context.Context, amqpURL string) error {
	if err := d.prepare(ctx, amqpURL); err != nil {
		return err
	}
	defer d.bus.close()
	if err := d.climb(ctx); err != nil {
		return err
	}
	e, err := d.settle(ctx)
	if err != nil {
		return err
	}
	return d.report(ctx, e)
}

// prepare makes the queue, applies the policy, and waits until the ladder stands and is empty.
func (d *demo) prepare(ctx context.Context, amqpURL string) error {
	var err error
	if d.bus, err = dial(ctx, amqpURL); err != nil {
		return err
	}
	if err := d.noteMissing(); err != nil {
		return err
	}
	if err := d.bus.declare(); err != nil {
		return err
	}
	d.screen.say("\nDeclared the quorum queue %s, bound to the topic exchange %s with %s, as an application would.", targetQueue, topicShop, topicKey)
	applied, err := d.kubectl(ctx, readyTimeout, "apply", "-k", samples)
	d.made.policy = strings.Contains(applied, "/"+policyName+" created")
	if err != nil {
		return err
	}
	if _, err := d.kubectl(ctx, readyTimeout+kubectlSlack, waitArgs(readyTimeout, "condition=Ready")...); err != nil {
		return errors.Join(err, d.showConditions(ctx))
	}
	p, err := d.cluster.policy(ctx)
	if err != nil {
		return err
	}
	d.ladder = ladderOf(p)
	if err := d.clear(ctx); err != nil {
		return err
	}
	return d.waitForZero(ctx)
}

// clear deletes what earlier demos left. What they left on its way from one queue to
// another shows up a moment later.
func (d *demo) clear(ctx context.Context) error {
	clearCtx, cancel := context.WithTimeoutCause(ctx, clearTimeout, errors.New("the queues of an earlier demo do not get empty"))
	defer cancel()
	sum := 0
	for {
		deleted, err := d.bus.clear(d.ladder.queues())
		sum += deleted
		if err != nil {
			return err
		}
		if deleted == 0 {
			break
		}
		if err := sleep(clearCtx, depthEvery); err != nil {
			return err
		}
	}
	if sum > 0 {
		d.screen.say("\nDeleted %d messages that an earlier demo had left.", sum)
	}
	return nil
}

// waitForZero waits until the status has noticed that the queues are empty: else its
// numbers at the end might be those of before.
func (d *demo) waitForZero(ctx context.Context) error {
	p, err := d.cluster.policy(ctx)
	if err != nil || isZero(p.Status.Parked.Messages) && isZero(p.Status.Retrying) {
		return err
	}
	d.screen.say("\nWaiting for the status to notice that the queues are empty.")
	return d.waitForCounts(ctx, 0)
}

// isZero takes an unknown number for one that is not out of date.
func isZero(n *int64) bool { return n == nil || *n == 0 }

// waitForCounts waits until the status says that so many are parked and none is retrying.
func (d *demo) waitForCounts(ctx context.Context, parked int) error {
	for _, path := range []string{
		fmt.Sprintf("jsonpath={.status.parked.messages}=%d", parked),
		"jsonpath={.status.retrying}=0",
	} {
		if _, err := d.cluster.run(ctx, waitArgs(statusTimeout, path)...); err != nil {
			return err
		}
	}
	return nil
}

var errClimbTooLong = errors.New("not every message came to its end in time")

// climb publishes and consumes until every message has come to its end. If some do not,
// it is left to the checks to say which.
func (d *demo) climb(ctx context.Context) error {
	budget := messages*publishEvery + d.ladder.climb() + climbSlack
	ctx, cancel := context.WithTimeoutCause(ctx, budget, errClimbTooLong)
	defer cancel()
	err := d.consume(ctx)
	if errors.Is(err, errClimbTooLong) {
		d.screen.say("\nAfter %s, %v.", budget, err)
		return nil
	}
	return err
}

func (d *demo) consume(ctx context.Context) error {
	start := time.Now()
	d.script = writeScript(strconv.FormatInt(start.UnixNano(), 36), messages)
	d.journal = newJournal(d.ladder, d.script)
	in, err := d.bus.consume(ctx, start)
	if err != nil {
		return err
	}
	d.screen.say("\nPublishing %d messages to %s. A third succeeds at once, a third fails twice, a third fails for good.", messages, topicShop)
	d.screen.say("The consumer's whole part: ack, or reject with requeue=false. The rest is done by the broker.\n")
	published := make(chan confirms, 1)
	go func() { published <- d.bus.publish(ctx, d.script, publishEvery) }()
	depths := d.bus.watch(ctx, d.ladder.queues())
	for !d.journal.done() {
		select {
		case delivery, open := <-in:
			if !open {
				return d.lost(ctx)
			}
			if err := d.answer(delivery, start); err != nil {
				return err
			}
		case d.publish = <-published:
			if d.publish.err != nil {
				return d.publish.err
			}
			published = nil
		case d.depths = <-depths:
			d.screen.show(d.picture())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if published != nil {
		d.publish = <-published // it ends with ctx
	}
	return d.publish.err
}

func (d *demo) lost(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.New("the broker ended the consumer")
}

// answer acknowledges or rejects a delivery, as the script says.
func (d *demo) answer(in incoming, start time.Time) error {
	a := arrivalOf(in.Delivery, d.ladder.Queue)
	a.At = in.at
	delivery, ours := d.journal.record(a)
	if !ours {
		d.screen.say("  %8s  %-9s is not of this demo", seconds(a.At), a.ID)
		return in.Ack(false)
	}
	d.screen.say("%s", delivery.describe(d.ladder))
	d.journal.answered(delivery, time.Since(start))
	if delivery.Outcome == acknowledge {
		return in.Ack(false)
	}
	return in.Reject(false)
}

func (d *demo) picture() picture {
	return picture{Ladder: d.ladder, Depths: d.depths, Acknowledged: d.journal.count(acknowledge), Total: len(d.script)}
}

// settle waits until the last message is parked and the status knows it, and gathers
// what is to be checked. What does not come is left to the checks.
func (d *demo) settle(ctx context.Context) (ending, error) {
	parked := len(d.journal.wantedParked())
	if err := d.untilParked(ctx, parked); err != nil {
		return ending{}, err
	}
	d.screen.leave(d.picture())
	contents, err := d.bus.browse(d.ladder.ParkingLot, d.ladder.Queue)
	if err != nil {
		return ending{}, err
	}
	d.screen.say("\nWaiting for the status to notice: the broker's statistics are up to 10s old.")
	// The status has to agree with the broker; whether the broker is right is for the checks.
	if err := d.waitForCounts(ctx, d.depths[d.ladder.ParkingLot]); err != nil {
		if ctx.Err() != nil {
			return ending{}, err
		}
		d.screen.say("%v", err) // and let the checks say what is wrong
	}
	p, err := d.cluster.policy(ctx)
	if err != nil {
		return ending{}, err
	}
	table, err := d.cluster.run(ctx, "-n", namespace, "get", "retrypolicies")
	if err != nil {
		return ending{}, err
	}
	return ending{
		Confirmed: d.publish.confirmed,
		Returned:  d.publish.returned,
		Depths:    d.bus.depths(d.ladder.queues()),
		Parked:    contents,
		Policy:    p,
		Table:     table,
	}, nil
}

// untilParked watches the depths until everything lies where it must, or for a while.
func (d *demo) untilParked(ctx context.Context, parked int) error {
	waitCtx, cancel := context.WithTimeout(ctx, parkTimeout)
	defer cancel()
	for d.depths = range d.bus.watch(waitCtx, d.ladder.queues()) {
		d.screen.show(d.picture())
		sum := 0
		for _, n := range d.depths {
			sum += n
		}
		if d.depths[d.ladder.ParkingLot] == parked && sum == parked {
			return nil
		}
	}
	return ctx.Err()
}

// report shows the state as kubectl shows it, and the checklist.
func (d *demo) report(ctx context.Context, e ending) error {
	d.screen.say("\n$ %s\n%s", commandLine([]string{"-n", namespace, "get", "retrypolicies"}), strings.TrimRight(e.Table, "\n"))
	for _, args := range [][]string{
		{"-n", namespace, "get", "retrypolicies", "-o", "wide"},
		{"-n", namespace, "get", "events", "--field-selector", "involvedObject.kind=RetryPolicy,involvedObject.name=" + policyName},
	} {
		if _, err := d.kubectl(ctx, kubectlSlack, args...); err != nil {
			return err
		}
	}
	d.screen.say("\nThe conditions:\n%s", strings.TrimRight(conditionTable(e.Policy.Status.Conditions), "\n"))
	d.screen.say("\nChecked:")
	verdicts := judge(d.journal, e)
	for _, v := range verdicts {
		d.screen.say("%s", strings.Join(v.lines(), "\n"))
	}
	if !allPassed(verdicts) {
		return errChecksFailed
	}
	return nil
}

// kubectl runs kubectl, shows the command with what it printed, and returns that.
func (d *demo) kubectl(ctx context.Context, timeout time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out, err := d.cluster.run(ctx, args...)
	if err == nil {
		d.screen.say("\n$ %s\n%s", commandLine(args), strings.TrimRight(out, "\n"))
	}
	return out, err
}

// showConditions tells why a policy is not ready.
func (d *demo) showConditions(ctx context.Context) error {
	p, err := d.cluster.policy(ctx)
	if err != nil {
		return err
	}
	d.screen.say("\n%s", conditionTable(p.Status.Conditions))
	return nil
}
