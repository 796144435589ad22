/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func testPicture() picture {
	return picture{Ladder: testLadder(), Total: 12, Acknowledged: 5, Depths: map[string]int{
		"orders": 0, "orders.retry.1.1s": 6, "orders.retry.2.2s": 1, "orders.parked": 12,
	}}
}

func TestThePictureInOneLine(t *testing.T) {
	want := `  orders   0 ── reject ─> [1] 1s ▕███     6▏ ─> [2] 2s ▕█       1▏ ─> [3] 4s ▕        ?▏ ─> orders.parked  12`
	if got := testPicture().line(); got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
}

func TestThePictureAsALadder(t *testing.T) {
	want := `
  orders                ▕                        ▏  0   5 acknowledged
      │ reject
      ├─> [1] 1s        ▕████████████            ▏  6
      ├─> [2] 2s        ▕██                      ▏  1
      ├─> [3] 4s        ▕                        ▏  ?
      └─> orders.parked ▕████████████████████████▏ 12`
	if got := "\n" + strings.Join(testPicture().rungs(), "\n"); got != want {
		t.Errorf("%s\nwant%s", got, want)
	}
}

func TestALadderWithoutTiers(t *testing.T) {
	p := picture{Ladder: ladder{Queue: "q", ParkingLot: "q.parked", MaxAttempts: 1}, Total: 3, Depths: map[string]int{"q": 1, "q.parked": 2}}
	if got, want := p.line(), "  q   1 ── reject ─> q.parked   2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := len(p.rungs()); got != 3 {
		t.Errorf("%d lines", got)
	}
}

func TestADeliveryInOneLine(t *testing.T) {
	c := content{RoutingKey: "order.created"}
	tests := map[string]struct {
		delivery delivery
		want     string
	}{
		"first, rejected": {
			delivery{arrival: arrival{ID: "order-02", Content: c, At: 250 * time.Millisecond}, Attempt: 1, Outcome: reject},
			"    0.250s  order-02  order.created      attempt 1/4                     reject ─> [1]",
		},
		"retried, acknowledged": {
			delivery{arrival: arrival{ID: "order-02", Content: c, At: 12253 * time.Millisecond}, Attempt: 3,
				Waited: 2004 * time.Millisecond, Wanted: 2 * time.Second, Outcome: acknowledge},
			"   12.253s  order-02  order.created      attempt 3/4  after 2.004s of 2s ack",
		},
		"the last, rejected": {
			delivery{arrival: arrival{ID: "order-03", Content: c, At: 12253 * time.Millisecond}, Attempt: 4, Last: true,
				Waited: 4004 * time.Millisecond, Wanted: 4 * time.Second, Outcome: reject},
			"   12.253s  order-03  order.created      attempt 4/4  after 4.004s of 4s reject ─> orders.parked",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.delivery.describe(testLadder()); got != tc.want {
				t.Errorf("\n%q, want\n%q", got, tc.want)
			}
		})
	}
}

func TestAVerdictShowsItsFirstProblems(t *testing.T) {
	v := verdict{Claim: "all is well"}
	if got := v.lines(); len(got) != 1 || got[0] != "  ✓ all is well" {
		t.Errorf("%q", got)
	}
	for range maxProblems + 2 {
		v.fail("bad")
	}
	got := v.lines()
	if got[0] != "  ✗ all is well" || got[1] != "      bad" || got[len(got)-1] != "      ... and 2 more" || len(got) != maxProblems+2 {
		t.Errorf("%q", got)
	}
}

func TestConditionsAsATable(t *testing.T) {
	got := conditionTable([]metav1.Condition{
		{Type: "Ready", Status: metav1.ConditionTrue, Reason: "RetriesActive", Message: "Failed messages are retried."},
		{Type: "TopologyReady", Status: metav1.ConditionUnknown, Reason: "NotObserved", Message: "Not yet."},
	})
	want := `TYPE            STATUS    REASON          MESSAGE
Ready           True      RetriesActive   Failed messages are retried.
TopologyReady   Unknown   NotObserved     Not yet.
`
	if got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
}

func testScreen(live bool) (*screen, *bytes.Buffer, *time.Time) {
	out, now := &bytes.Buffer{}, time.Unix(0, 0)
	return &screen{out: out, live: live, width: func() int { return 20 }, now: func() time.Time { return now }}, out, &now
}

func smallPicture(depth int) picture {
	return picture{Ladder: ladder{Queue: "q", ParkingLot: "p"}, Total: 24, Depths: map[string]int{"q": depth, "p": 0}}
}

func TestOnATerminalThePictureStaysBelowTheLines(t *testing.T) {
	s, out, _ := testScreen(true)
	s.show(smallPicture(0))
	s.show(smallPicture(0)) // nothing new, nothing written
	s.say("one")
	s.leave(smallPicture(1))
	s.say("two")
	// Four lines of picture, each cut before it would wrap.
	empty := "\n  q         ▕      \n      │ reject\n      └─> p ▕      \n"
	full := "\n  q         ▕█     \n      │ reject\n      └─> p ▕      \n"
	const redraw = "\x1b[4A\r\x1b[J"
	want := empty + redraw + "one\n" + empty + redraw + full + "two\n"
	if got := out.String(); got != want {
		t.Errorf("\n%q, want\n%q", got, want)
	}
}

func TestInAPipeThePictureComesWhenItHasChangedAndNotTooOften(t *testing.T) {
	s, out, now := testScreen(false)
	*now = now.Add(quietTime)
	s.show(smallPicture(0))
	s.show(smallPicture(1)) // too soon
	s.say("one")
	*now = now.Add(quietTime)
	s.show(smallPicture(0)) // as before
	s.show(smallPicture(2))
	s.leave(smallPicture(3)) // soon, and the last
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if strings.Contains(out.String(), "\x1b") {
		t.Error("escape sequences in plain output")
	}
	if len(lines) != 4 || lines[1] != "one" {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
}
