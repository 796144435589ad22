/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

// writeEnv writes what a shell needs to work with the sandbox, and links the broker's
// log beside the others.
func (b *box) writeEnv(assets, kubeconfig string, broker *sandbox.Broker) error {
	if err := os.WriteFile(b.path("env"), []byte(envFile(assets, kubeconfig, broker)), 0o600); err != nil {
		return fmt.Errorf("write the sandbox's env: %w", err)
	}
	link := b.path("rabbitmq.log")
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("link the broker's log: %w", err)
	}
	if log := broker.LogFile(); log != "" {
		if err := os.Symlink(log, link); err != nil {
			return fmt.Errorf("link the broker's log: %w", err)
		}
	}
	return nil
}

func envFile(assets, kubeconfig string, broker *sandbox.Broker) string {
	var text strings.Builder
	for _, kv := range [][2]string{
		{"KUBECONFIG", kubeconfig},
		{"AMQP_URL", broker.AMQPURL("/")},
		{"MANAGEMENT_URL", broker.ManagementURL},
		{"RABBITMQ_USERNAME", broker.Username},
		{"RABBITMQ_PASSWORD", broker.Password},
	} {
		fmt.Fprintf(&text, "export %s=%s\n", kv[0], shellQuote(kv[1]))
	}
	if assets != "" {
		fmt.Fprintf(&text, "export PATH=%s:\"$PATH\"\n", shellQuote(assets))
	}
	return text.String()
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
