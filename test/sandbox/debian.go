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
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// debianSuites are the Debian releases that package each version of RabbitMQ.
var debianSuites = map[string]string{"4.0": "trixie", "4.3": "forky"}

// debootstrapScripts has one script per suite; that of sid works for every suite that an
// older debootstrap does not know by name.
const debootstrapScripts = "/usr/share/debootstrap/scripts"

// debianTree returns a root file system with RabbitMQ of the given version.
func debianTree(ctx context.Context, log Log, version string) (string, error) {
	suite, ok := debianSuites[version]
	if !ok {
		return "", fmt.Errorf("find RabbitMQ %s: no Debian release is known to package it", version)
	}
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	key := fmt.Sprintf("rabbitmq-%s-%s-%s", version, suite, runtime.GOARCH)
	return cached(ctx, log, cache, key, func(tmp string) error {
		return buildTree(ctx, log, version, suite, tmp)
	})
}

func buildTree(ctx context.Context, log Log, version, suite, dir string) error {
	source, err := packageSource()
	if err != nil {
		return err
	}
	if err := ensureDebootstrap(ctx, log); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "debootstrap", debootstrapArgs(source, suite, dir, debootstrapScripts)...)
	// Its mounts then end with it, even when it is killed.
	cmd.SysProcAttr = privateMounts()
	title := fmt.Sprintf("Installing RabbitMQ %s from Debian %s (a few minutes once, then cached)", version, suite)
	if err := runLong(ctx, log, title, cmd); err != nil {
		return fmt.Errorf("install RabbitMQ %s: %w", version, err)
	}
	return finishTree(dir)
}

func debootstrapArgs(source aptSource, suite, dir, scripts string) []string {
	args := []string{"--variant=minbase", "--include=rabbitmq-server"}
	if source.keyring != "" {
		args = append(args, "--keyring="+source.keyring)
	}
	args = append(args, suite, dir, source.uri)
	if _, err := os.Stat(filepath.Join(scripts, suite)); err != nil {
		args = append(args, filepath.Join(scripts, "sid"))
	}
	return args
}

// finishTree makes localhost resolve in the tree and drops what only apt needs.
func finishTree(dir string) error {
	hosts := filepath.Join(dir, "etc", "hosts")
	if err := os.WriteFile(hosts, []byte("127.0.0.1 localhost\n"), 0o644); err != nil {
		return fmt.Errorf("write the tree's hosts: %w", err)
	}
	for _, waste := range []string{"var/cache/apt", "var/lib/apt/lists"} {
		if err := os.RemoveAll(filepath.Join(dir, waste)); err != nil {
			return fmt.Errorf("remove the tree's package files: %w", err)
		}
	}
	return nil
}

// packageSource is SANDBOX_DEBIAN_MIRROR, else the machine's own Debian archive.
func packageSource() (aptSource, error) {
	source, found := debianMirror("/etc/apt")
	if uri := os.Getenv("SANDBOX_DEBIAN_MIRROR"); uri != "" {
		source.uri, found = uri, true
	}
	if !found {
		return source, errors.New("find a Debian archive: /etc/apt names none; " +
			"set SANDBOX_DEBIAN_MIRROR to the address of one (and SANDBOX_DEBIAN_KEYRING to its keyring)")
	}
	if keyring := os.Getenv("SANDBOX_DEBIAN_KEYRING"); keyring != "" {
		source.keyring = keyring
	}
	if source.keyring == "" {
		source.keyring = archiveKeyring("/usr/share/keyrings")
	}
	return source, nil
}

func archiveKeyring(dir string) string {
	for _, name := range []string{"debian-archive-keyring.gpg", "debian-archive-keyring.pgp"} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

func ensureDebootstrap(ctx context.Context, log Log) error {
	if hasDebootstrap() {
		return nil
	}
	log("debootstrap is not installed here")
	for _, args := range [][]string{
		{"apt-get", "update"},
		{"apt-get", "install", "--yes", "--no-install-recommends", "debootstrap"},
	} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if err := runLong(ctx, log, "Running "+strings.Join(args, " "), cmd); err != nil {
			return fmt.Errorf("install debootstrap: %w", err)
		}
	}
	return nil
}
