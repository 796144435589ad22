/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

func TestCachedBuildsOnceForAllWhoAsk(t *testing.T) {
	cache := t.TempDir()
	var builds atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			dir, err := cached(context.Background(), t.Logf, cache, "key", func(tmp string) error {
				builds.Add(1)
				return os.WriteFile(filepath.Join(tmp, "whole"), nil, 0o600)
			})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := os.Stat(filepath.Join(dir, "whole")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := builds.Load(); n != 1 {
		t.Errorf("built %d times", n)
	}
}

func TestCachedNeverUsesAHalfMadeEntry(t *testing.T) {
	cache := t.TempDir()
	half := filepath.Join(cache, "key.tmp")
	if err := os.MkdirAll(half, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(half, "half"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	_, err := cached(context.Background(), t.Logf, cache, "key", func(tmp string) error {
		if _, err := os.Stat(filepath.Join(tmp, "half")); err == nil {
			t.Error("the build started from a half-made entry")
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	if isDir(filepath.Join(cache, "key")) || isDir(half) {
		t.Error("a failed build left an entry")
	}
	if _, err := cached(context.Background(), t.Logf, cache, "key", func(string) error { return nil }); err != nil {
		t.Errorf("the next build failed: %v", err)
	}
}

func TestLockEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := Lock(context.Background(), t.Logf, path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Lock(ctx, t.Logf, path); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	unlock()
	again, err := Lock(context.Background(), t.Logf, path)
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestAssetVersionsComeFromTheSandboxModule(t *testing.T) {
	root, err := RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	v, err := readAssetVersions(filepath.Join(root, "hack", "sandbox", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", v)
	empty := filepath.Join(t.TempDir(), "go.mod")
	if err := os.WriteFile(empty, []byte("module m\n\nreplace k8s.io/kubernetes => k8s.io/kubernetes v1.0.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readAssetVersions(empty); err == nil {
		t.Error("a go.mod without the versions was accepted")
	}
}
