/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

// A sandbox that is taken for down would be ended at the end, although it is someone's.
func TestASandboxOfWhichSomethingRunsIsNotOurs(t *testing.T) {
	self, ok := sandbox.FindProcess(os.Getpid())
	if !ok {
		t.Fatal("this process is not there")
	}
	alive := fmt.Sprintf(`{"process": {"pid": %d, "started": %q}}`, self.PID, self.Started)
	const gone = `{"process": {"pid": 1, "started": "another time"}}`
	const external = `{"kind": "external", "external": {"managementURL": "http://127.0.0.1:1"}}`
	tests := map[string]struct {
		state    string
		any, all bool
	}{
		"never brought up":             {``, false, false},
		"brought up by halves":         {`{"etcd": {"process": {"pid": 0}}, "apiServer": {}, "operator": {}}`, false, false},
		"everything has ended":         {`{"etcd": ` + gone + `, "apiServer": ` + gone + `, "operator": ` + gone + `, "broker": ` + external + `}`, false, false},
		"only the operator runs":       {`{"etcd": ` + gone + `, "apiServer": ` + gone + `, "operator": ` + alive + `, "broker": ` + external + `}`, true, false},
		"the operator has ended":       {`{"etcd": ` + alive + `, "apiServer": ` + alive + `, "operator": ` + gone + `, "broker": ` + external + `}`, true, false},
		"everything runs":              {`{"etcd": ` + alive + `, "apiServer": ` + alive + `, "operator": ` + alive + `, "broker": ` + external + `}`, true, true},
		"there is no broker":           {`{"etcd": ` + alive + `, "apiServer": ` + alive + `, "operator": ` + alive + `}`, true, false},
		"everything runs in a cluster": {`{"cluster": "/kubeconfig", "etcd": {}, "apiServer": {}, "operator": ` + alive + `, "broker": ` + external + `}`, true, true},
		"the broker's data is gone":    {`{"etcd": ` + alive + `, "apiServer": ` + alive + `, "operator": ` + alive + `, "broker": {"kind": "chroot", "path": "/nowhere"}}`, true, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := &box{root: t.TempDir()}
			if tc.state != "" {
				if err := os.MkdirAll(filepath.Dir(b.file("state.json")), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(b.file("state.json"), []byte(tc.state), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s, err := b.state()
			if err != nil {
				t.Fatal(err)
			}
			if got := s.anyAlive(t.Context()); got != tc.any {
				t.Errorf("something runs: %t, want %t", got, tc.any)
			}
			if got := s.allAlive(t.Context()); got != tc.all {
				t.Errorf("everything runs: %t, want %t", got, tc.all)
			}
		})
	}
}

func TestAStateThatCantBeReadIsAnError(t *testing.T) {
	b := &box{root: t.TempDir()}
	if err := os.MkdirAll(filepath.Dir(b.file("state.json")), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.file("state.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.up(t.Context()); err == nil || b.ours {
		t.Errorf("error %v, ours %t", err, b.ours)
	}
}

func TestTheEnvIsReadAsAShellDoes(t *testing.T) {
	b := &box{root: t.TempDir()}
	if err := os.MkdirAll(filepath.Dir(b.file("env")), 0o700); err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "kubectl"), []byte("#!/bin/sh\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	env := `export KUBECONFIG='/a b/kube'\''config'` + "\n" + `export AMQP_URL='amqp://u:p@h:1/%2F'` + "\n" + `export PATH='` + bin + `':"$PATH"` + "\n"
	if err := os.WriteFile(b.file("env"), []byte(env), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := b.endpoints(t.Context())
	want := endpoints{kubeconfig: "/a b/kube'config", amqpURL: "amqp://u:p@h:1/%2F", kubectl: filepath.Join(bin, "kubectl")}
	if err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if err := os.Remove(b.file("env")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.endpoints(t.Context()); err == nil {
		t.Error("no error without the file")
	}
}

func TestWhatCantBeWrittenIsDropped(t *testing.T) {
	r, w := io.Pipe()
	_ = r.CloseWithError(errors.New("gone"))
	if n, err := (lossy{w}).Write([]byte("text")); n != 4 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func TestTheLadderIsReadFromTheStatus(t *testing.T) {
	p := &v1alpha1.RetryPolicy{}
	p.Spec.Queue, p.Spec.MaxAttempts = "orders", 2
	p.Status.Parked.QueueName = "orders.parked"
	p.Status.Tiers = []v1alpha1.TierStatus{{Attempt: 1, Delay: metav1.Duration{Duration: time.Second}, QueueName: "orders.retry.1.1s"}}
	got := ladderOf(p)
	if got.MaxAttempts != 2 || got.wait(2) != time.Second || fmt.Sprint(got.queues()) != "[orders orders.retry.1.1s orders.parked]" {
		t.Errorf("%+v", got)
	}
}
