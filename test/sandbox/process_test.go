/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package sandbox

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	const rest = " 1 5 5 0 -1 4 1 0 0 0 0 0 0 0 20 0 1 0 4242 1 1"
	tests := map[string]struct {
		stat, started string
		alive         bool
	}{
		"a running process":               {"5 (beam.smp) S" + rest, "4242", true},
		"a name with blanks and brackets": {"5 (a) Z (b) R" + rest, "4242", true},
		"a zombie counts as gone":         {"5 (sh) Z" + rest, "", false},
		"a cut-off line":                  {"5 (sh) S 1 5", "", false},
		"nothing":                         {"", "", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			started, alive := parseStat(test.stat)
			if started != test.started || alive != test.alive {
				t.Errorf("got %q, %v", started, alive)
			}
		})
	}
}

func TestAReusedPidIsLeftAlone(t *testing.T) {
	p, err := StartDetached(exec.Command("sleep", "600"))
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	t.Cleanup(func() { _ = p.KillGroup(ctx) })

	other := Process{PID: p.PID, Started: p.Started + "0"}
	if err := other.EndGroup(ctx, time.Second); err != nil {
		t.Fatal(err)
	}
	if !p.Alive() {
		t.Fatal("a process with another start time was ended")
	}
	if err := p.EndGroup(ctx, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if p.Alive() {
		t.Error("the process still runs")
	}
}

func TestADeafProcessIsKilled(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	p, err := StartDetached(exec.Command("sh", "-c", `trap "" TERM; touch "$0"; while :; do sleep 0.1; done`, ready))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := Poll(ctx, 10*time.Millisecond, func() (bool, error) { _, err := os.Stat(ready); return err == nil, nil }); err != nil {
		t.Fatal(err)
	}
	if err := p.EndGroup(ctx, 300*time.Millisecond); err != nil || p.Alive() {
		t.Errorf("alive %v, %v", p.Alive(), err)
	}
}

func TestLeftoverInstancesAreRemoved(t *testing.T) {
	cache := t.TempDir()
	tree := filepath.Join(cache, "rabbitmq-4.3-forky-test")
	if err := os.MkdirAll(filepath.Join(tree, "srv"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	helper, err := StartDetached(exec.Command("sleep", "600"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = helper.KillGroup(ctx) })
	gone := Process{PID: os.Getpid(), Started: "0"}
	file := filepath.Join(cache, "state.json")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	create := func(name string, o owner) *instance {
		t.Helper()
		i, err := createInstance(ctx, t.Logf, tree, o, Node{Name: name + "@localhost"})
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	ours := create("rabbit-ours", thisProcess())
	sandbox := create("rabbit-sandbox", owner{File: file})
	left := create("rabbit-left", owner{Process: &gone})
	left.Broker = helper
	if err := left.save(); err != nil {
		t.Fatal(err)
	}
	create("rabbit-new", thisProcess())

	if !isDir(ours.dir) || !isDir(sandbox.dir) {
		t.Error("an instance whose owner is there was removed")
	}
	if isDir(left.dir) || helper.Alive() {
		t.Error("the leftover is still there")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	create("rabbit-newer", thisProcess())
	if isDir(sandbox.dir) {
		t.Error("the instance outlived the file that owns it")
	}
}
