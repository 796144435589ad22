/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
)

func testLadder() ladder {
	return ladder{Queue: "orders", ParkingLot: "orders.parked", MaxAttempts: 4, Tiers: []tier{
		{Queue: "orders.retry.1.1s", Delay: time.Second},
		{Queue: "orders.retry.2.2s", Delay: 2 * time.Second},
		{Queue: "orders.retry.3.4s", Delay: 4 * time.Second},
	}}
}

// afterGoodRun plays the script as a sound ladder would, all messages at once.
func afterGoodRun() (*journal, ending) {
	l := testLadder()
	j := newJournal(l, writeScript("run-1", 12))
	at := time.Duration(0)
	for attempt := 1; attempt <= l.MaxAttempts; attempt++ {
		at += l.wait(attempt) + time.Millisecond
		for _, m := range j.script {
			if _, ended := j.ended[m.ID]; ended {
				continue
			}
			d, _ := j.record(arrival{ID: m.ID, Content: died(m.Content), BrokerAttempt: attempt, At: at})
			j.answered(d, at)
		}
	}
	e := ending{Confirmed: 12, Depths: map[string]int{}, Policy: goodPolicy(), Table: goodTable}
	for _, queue := range l.queues() {
		e.Depths[queue] = 0
	}
	e.Depths[l.ParkingLot] = 4
	for _, m := range j.script {
		if m.parked(l.MaxAttempts) {
			e.Parked = append(e.Parked, arrival{ID: m.ID, Content: died(m.Content)})
		}
	}
	return j, e
}

// died is a message's content after it has been dead-lettered.
func died(c content) content {
	c.Headers, c.Properties = maps.Clone(c.Headers), maps.Clone(c.Properties)
	c.Headers["x-death"] = []any{}
	c.Headers["x-last-death-reason"] = "rejected"
	c.Headers["x-first-death-queue"] = "orders"
	return c
}

func goodPolicy() *v1alpha1.RetryPolicy {
	parked, retrying := int64(4), int64(0)
	p := &v1alpha1.RetryPolicy{ObjectMeta: metav1.ObjectMeta{Name: "orders", Generation: 2}}
	p.Status.ObservedGeneration = 2
	p.Status.Parked.Messages, p.Status.Retrying = &parked, &retrying
	p.Status.Conditions = wantedConditions(p, parked)
	for i := range p.Status.Conditions {
		p.Status.Conditions[i].ObservedGeneration = 2
	}
	return p
}

const goodTable = `NAME     QUEUE    STRATEGY   ATTEMPTS   RETRYING   PARKED   READY   REASON          AGE
orders   orders   Ladder     4          0          4        True    RetriesActive   20s
`

func TestAGoodRunPassesEveryCheck(t *testing.T) {
	j, e := afterGoodRun()
	if !j.done() {
		t.Fatal("the run is not done")
	}
	if got, want := len(j.deliveries), 4*1+4*3+4*4; got != want || j.wantedDeliveries() != want {
		t.Errorf("deliveries: %d, wanted by the script %d, want %d", got, j.wantedDeliveries(), want)
	}
	for _, v := range judge(j, e) {
		if !v.passed() {
			t.Errorf("%s: %v", v.Claim, v.Problems)
		}
	}
}

// A check that can't fail shows nothing: each is given what it must not accept.
func TestEachCheckFailsOnBadData(t *testing.T) {
	const (
		confirms   = "the broker confirmed"
		accounts   = "nothing lost"
		deliveries = "exactly"
		count      = "the broker's own count"
		delays     = "none of"
		contents   = "routing keys"
		depths     = "orders and its tiers are empty"
		counts     = "the status says"
		conditions = "the conditions"
		table      = "kubectl"
	)
	condition := func(e ending, name string) *metav1.Condition {
		i := slices.IndexFunc(e.Policy.Status.Conditions, func(c metav1.Condition) bool { return c.Type == name })
		return &e.Policy.Status.Conditions[i]
	}
	// The deliveries come attempt by attempt: 12, 8, 8, 4. order-01 succeeds, order-02 fails
	// twice, order-03 fails for good.
	const firstRetry = 12
	tests := map[string]struct {
		spoil  func(*journal, *ending)
		failed []string
	}{
		"a message was not confirmed": {
			func(_ *journal, e *ending) { e.Confirmed-- }, []string{confirms}},
		"a message was returned": {
			func(_ *journal, e *ending) { e.Returned++ }, []string{confirms}},
		"a parked message is missing": {
			func(_ *journal, e *ending) { e.Parked = e.Parked[1:] }, []string{accounts}},
		"a message is parked twice": {
			func(_ *journal, e *ending) { e.Parked = append(e.Parked, e.Parked[0]) }, []string{accounts}},
		"an acknowledged message is parked too": {
			func(j *journal, e *ending) {
				e.Parked = append(e.Parked, arrival{ID: "order-01", Content: j.script[0].Content})
			}, []string{accounts}},
		"a message of someone else is parked": {
			func(j *journal, e *ending) {
				e.Parked = append(e.Parked, arrival{ID: "other", Content: content{}})
			}, []string{accounts}},
		"a message of someone else was delivered": {
			func(j *journal, _ *ending) {
				if _, ours := j.record(arrival{ID: "order-01", Content: writeScript("run-0", 1)[0].Content}); ours {
					panic("booked as ours")
				}
			}, []string{accounts}},
		"a message never came": {
			func(j *journal, _ *ending) { j.deliveries = j.deliveries[1:] }, []string{accounts, deliveries}},
		"an acknowledged message came again": {
			func(j *journal, _ *ending) {
				j.record(arrival{ID: "order-01", Content: j.script[0].Content, BrokerAttempt: 2, At: time.Hour})
			}, []string{accounts, deliveries}},
		"a message came again after its last attempt": {
			func(j *journal, _ *ending) {
				d, _ := j.record(arrival{ID: "order-03", Content: j.script[2].Content, BrokerAttempt: 5, At: time.Hour})
				if d.Outcome != acknowledge {
					panic("it goes on for ever")
				}
			}, []string{accounts, deliveries, delays}},
		"the broker's count differs": {
			func(j *journal, _ *ending) { j.deliveries[firstRetry].BrokerAttempt = 1 }, []string{count}},
		"nothing was delivered": {
			func(j *journal, _ *ending) { j.deliveries = nil }, []string{accounts, deliveries, count, delays, contents}},
		"a retry came too early": {
			func(j *journal, _ *ending) { j.deliveries[firstRetry].Waited = 990 * time.Millisecond }, []string{delays}},
		"the routing key changed": {
			func(j *journal, _ *ending) { j.deliveries[firstRetry].Content.RoutingKey = "orders" }, []string{contents}},
		"the body changed": {
			func(j *journal, _ *ending) { j.deliveries[firstRetry].Content.Body = "{}" }, []string{contents}},
		"a header changed": {
			func(j *journal, _ *ending) { j.deliveries[firstRetry].Content.Headers["number"] = int64(99) }, []string{contents}},
		"a header is gone": {
			func(j *journal, _ *ending) { delete(j.deliveries[firstRetry].Content.Headers, "trace") }, []string{contents}},
		"a header was added": {
			func(j *journal, _ *ending) { j.deliveries[firstRetry].Content.Headers["x-retries"] = int64(1) }, []string{contents}},
		"a property is gone": {
			func(j *journal, _ *ending) { delete(j.deliveries[firstRetry].Content.Properties, propertyType) }, []string{contents}},
		"a parked message changed": {
			func(_ *journal, e *ending) { e.Parked[0].Content.Body = "" }, []string{contents}},
		"a tier is not empty": {
			func(_ *journal, e *ending) { e.Depths["orders.retry.2.2s"] = 1 }, []string{depths}},
		"the depth of a tier is unknown": {
			func(_ *journal, e *ending) { delete(e.Depths, "orders.retry.2.2s") }, []string{depths}},
		"the parking lot is short of one": {
			func(_ *journal, e *ending) { e.Depths["orders.parked"] = 3 }, []string{depths}},
		"the parked count is wrong": {
			func(_ *journal, e *ending) { *e.Policy.Status.Parked.Messages = 3 }, []string{counts}},
		"the parked count is unknown": {
			func(_ *journal, e *ending) { e.Policy.Status.Parked.Messages = nil }, []string{counts}},
		"some are still retrying": {
			func(_ *journal, e *ending) { *e.Policy.Status.Retrying = 1 }, []string{counts}},
		"the retrying count is unknown": {
			func(_ *journal, e *ending) { e.Policy.Status.Retrying = nil }, []string{counts}},
		"a condition turned": {
			func(_ *journal, e *ending) { condition(*e, v1alpha1.ConditionReady).Status = metav1.ConditionFalse }, []string{conditions}},
		"a condition has another reason": {
			func(_ *journal, e *ending) { condition(*e, v1alpha1.ConditionDeadLetteringSafe).Reason = "Other" }, []string{conditions}},
		"a condition is missing": {
			func(_ *journal, e *ending) { e.Policy.Status.Conditions = e.Policy.Status.Conditions[1:] }, []string{conditions}},
		"a condition is about an older generation": {
			func(_ *journal, e *ending) {
				condition(*e, v1alpha1.ConditionBindingsHealthy).ObservedGeneration = 1
			}, []string{conditions}},
		"the status is about an older generation": {
			func(_ *journal, e *ending) { e.Policy.Status.ObservedGeneration = 1 }, []string{conditions}},
		"the alert threshold is reached and the condition does not say so": {
			func(_ *journal, e *ending) { e.Policy.Spec.ParkingLot.Alert.Messages = 4 }, []string{conditions}},
		"kubectl shows another number": {
			func(_ *journal, e *ending) { e.Table = strings.Replace(e.Table, "0          4 ", "0          3 ", 1) }, []string{table}},
		"kubectl shows no number": {
			func(_ *journal, e *ending) { e.Table = strings.Replace(e.Table, "0          4 ", "0            ", 1) }, []string{table}},
		"kubectl shows no row": {
			func(_ *journal, e *ending) { e.Table, _, _ = strings.Cut(e.Table, "\n") }, []string{table}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			j, e := afterGoodRun()
			tc.spoil(j, &e)
			verdicts := judge(j, e)
			if allPassed(verdicts) {
				t.Fatal("every check passed")
			}
			for _, v := range verdicts {
				want := slices.ContainsFunc(tc.failed, func(prefix string) bool { return strings.HasPrefix(v.Claim, prefix) })
				if v.passed() == want {
					t.Errorf("%q: failed %t, want %t: %v", v.Claim, !v.passed(), want, v.Problems)
				}
			}
		})
	}
}

func TestEveryCheckOfTheListCanFail(t *testing.T) {
	j := newJournal(testLadder(), writeScript("run-1", 12))
	for _, v := range judge(j, ending{Policy: &v1alpha1.RetryPolicy{}}) {
		if v.passed() {
			t.Errorf("%q passes although nothing happened", v.Claim)
		}
	}
}

func TestASmallDelayIsForgivenForTheBrokersClock(t *testing.T) {
	j, _ := afterGoodRun()
	j.deliveries[12].Waited = time.Second - clockSlack
	if v := checkDelays(j); !v.passed() {
		t.Errorf("%v", v.Problems)
	}
}

func TestTheParkingLotIsUnhealthyFromItsThresholdOn(t *testing.T) {
	j, e := afterGoodRun()
	e.Policy.Spec.ParkingLot.Alert.Messages = 4
	c := &e.Policy.Status.Conditions[4]
	c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonDepthThresholdExceeded
	if v := checkConditions(j, e); !v.passed() {
		t.Errorf("%v", v.Problems)
	}
}

func TestTableRowKeepsEmptyCellsApart(t *testing.T) {
	row, ok := tableRow("NAME     RETRYING   PARKING LOT   AGE\norders              orders.parked 2s\n", "orders")
	if !ok || row["RETRYING"] != "" || row["PARKING LOT"] != "orders.parked" || row["AGE"] != "2s" {
		t.Errorf("%t %v", ok, row)
	}
}
