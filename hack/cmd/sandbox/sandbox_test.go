/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

func TestEnvFileIsSafeForAShell(t *testing.T) {
	broker := &sandbox.Broker{ManagementURL: "http://127.0.0.1:1", Username: "o'hara $(id)", Password: `p"w\`}
	file := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(file, []byte(envFile("/a b", "/k'c", broker)), 0o600); err != nil {
		t.Fatal(err)
	}
	script := `. "$0"; printf '%s|%s|%s|%s' "$KUBECONFIG" "$RABBITMQ_USERNAME" "$RABBITMQ_PASSWORD" "${PATH%%:*}"`
	out, err := exec.Command("sh", "-c", script, file).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(out), `/k'c|o'hara $(id)|p"w\|/a b`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestStateSurvives(t *testing.T) {
	root := t.TempDir()
	b, err := openBox(root)
	if err != nil {
		t.Fatal(err)
	}
	b.state.Operator = service{Process: sandbox.Process{PID: 1, Started: "2"}, Ports: []int{3}}
	if err := b.save(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(b.path("state.json"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the state, which holds a password, has mode %v", info.Mode())
	}
	again, err := openBox(root)
	if err != nil {
		t.Fatal(err)
	}
	if again.state.Operator.Process != b.state.Operator.Process {
		t.Errorf("got %+v", again.state.Operator)
	}
}

func TestAnotherProgramIsNeverEnded(t *testing.T) {
	self, ok := sandbox.FindProcess(os.Getpid())
	if !ok {
		t.Fatal("this process is not there")
	}
	s := service{Process: sandbox.Process{PID: self.PID, Started: self.Started + "1"}}
	if err := end(t.Context(), "a test", s); err != nil { // a signal would end this test
		t.Fatal(err)
	}
	if got := describe(s); !strings.HasPrefix(got, "ended") {
		t.Errorf("got %q", got)
	}
}
