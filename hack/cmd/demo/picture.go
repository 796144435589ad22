/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

// picture is one moment of the climb.
type picture struct {
	Ladder       ladder
	Depths       map[string]int // what is absent is unknown
	Acknowledged int
	// Total is how many messages there are, which fill a bar.
	Total int
}

// maxProblems is how many problems of one check are shown.
const maxProblems = 5

// line draws the picture in one line, each number at the same place as in the line before.
func (p picture) line() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "  %s %s ── reject", p.Ladder.Queue, p.depth(p.Ladder.Queue))
	for i, t := range p.Ladder.Tiers {
		fmt.Fprintf(&sb, " ─> [%d] %s ▕%s%s▏", i+1, topology.DelayText(t.Delay), p.bar(t.Queue, 6), p.depth(t.Queue))
	}
	fmt.Fprintf(&sb, " ─> %s %s", p.Ladder.ParkingLot, p.depth(p.Ladder.ParkingLot))
	return sb.String()
}

// rungs draws the picture as a ladder, one queue in a line.
func (p picture) rungs() []string {
	names := []string{p.Ladder.Queue}
	for i, t := range p.Ladder.Tiers {
		names = append(names, fmt.Sprintf("    ├─> [%d] %s", i+1, topology.DelayText(t.Delay)))
	}
	names = append(names, "    └─> "+p.Ladder.ParkingLot)
	width := 0
	for _, n := range names {
		width = max(width, utf8.RuneCountInString(n))
	}
	lines := make([]string, 0, len(names)+1)
	for i, queue := range p.Ladder.queues() {
		lines = append(lines, fmt.Sprintf("  %-*s ▕%s▏%s", width, names[i], p.bar(queue, 24), p.depth(queue)))
	}
	lines[0] += fmt.Sprintf("   %d acknowledged", p.Acknowledged)
	return slices.Insert(lines, 1, "      │ reject")
}

func (p picture) depth(queue string) string {
	if n, known := p.Depths[queue]; known {
		return fmt.Sprintf("%3d", n)
	}
	return "  ?"
}

// bar fills up with the share of all messages that are in a queue. One message shows.
func (p picture) bar(queue string, width int) string {
	filled := 0
	if p.Total > 0 {
		filled = min((p.Depths[queue]*width+p.Total-1)/p.Total, width)
	}
	return strings.Repeat("█", filled) + strings.Repeat(" ", width-filled)
}

// describe writes a delivery in one line.
func (d delivery) describe(l ladder) string {
	wait, next := "", string(d.Outcome)
	if d.Attempt > 1 {
		wait = fmt.Sprintf("after %s of %s", seconds(d.Waited), topology.DelayText(d.Wanted))
	}
	switch {
	case d.Outcome == acknowledge:
	case d.Last:
		next += " ─> " + l.ParkingLot
	default:
		next += fmt.Sprintf(" ─> [%d]", d.Attempt)
	}
	return fmt.Sprintf("  %8s  %-9s %-18s attempt %d/%d  %-18s %s",
		seconds(d.At), d.ID, d.Content.RoutingKey, d.Attempt, l.MaxAttempts, wait, next)
}

// lines writes a verdict as a line of the checklist, with its problems below.
func (v verdict) lines() []string {
	if v.passed() {
		return []string{"  ✓ " + v.Claim}
	}
	all := []string{"  ✗ " + v.Claim}
	for i, problem := range v.Problems {
		if i == maxProblems {
			return append(all, fmt.Sprintf("      ... and %d more", len(v.Problems)-maxProblems))
		}
		all = append(all, "      "+problem)
	}
	return all
}

// conditionTable writes conditions as kubectl writes tables.
func conditionTable(conditions []metav1.Condition) string {
	var sb strings.Builder
	// A strings.Builder takes everything.
	w := tabwriter.NewWriter(&sb, 0, 8, 3, ' ', 0)
	_, _ = fmt.Fprintln(w, "TYPE\tSTATUS\tREASON\tMESSAGE")
	for _, c := range conditions {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	_ = w.Flush()
	return sb.String()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3fs", d.Seconds()) }
