/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// CacheDir returns the folder that keeps what is built once per machine and user.
func CacheDir() (string, error) {
	base := os.Getenv("XDG_CACHE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find the cache directory (set XDG_CACHE_HOME): %w", err)
		}
		base = filepath.Join(home, ".cache")
	}
	return filepath.Join(base, "rabbitmq-retry-operator"), nil
}

// cached returns the folder <cache>/<key>, made by build when it is not there yet.
// build fills a sibling that gets its name only when it is complete, under a lock
// that all processes of the machine share: an entry exists whole or not at all.
func cached(ctx context.Context, log Log, cache, key string, build func(tmp string) error) (string, error) {
	entry := filepath.Join(cache, key)
	if isDir(entry) {
		return entry, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("make the cache directory: %w", err)
	}
	unlock, err := Lock(ctx, log, filepath.Join(cache, key+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if isDir(entry) { // another process made it while this one waited
		return entry, nil
	}
	tmp := entry + ".tmp"
	if err := os.RemoveAll(tmp); err != nil { // left by a process that was ended
		return "", fmt.Errorf("remove a half-made cache entry: %w", err)
	}
	if err := os.Mkdir(tmp, 0o755); err != nil {
		return "", fmt.Errorf("make a cache entry: %w", err)
	}
	if err := build(tmp); err != nil {
		return "", errors.Join(err, os.RemoveAll(tmp))
	}
	if err := os.Rename(tmp, entry); err != nil {
		return "", fmt.Errorf("finish a cache entry: %w", err)
	}
	return entry, nil
}

// Lock takes an exclusive lock that the kernel frees when the process ends. It waits
// for whoever has it.
func Lock(ctx context.Context, log Log, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	started := time.Now()
	said := started
	err = Poll(ctx, 100*time.Millisecond, func() (bool, error) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return err == nil, err
		}
		if time.Since(said) >= progressEvery {
			said = time.Now()
			log("Waiting for another process that makes %s (%s) ...", filepath.Base(path), elapsed(started))
		}
		return false, nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
