/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

// Package sandbox brings up the real things that tests and `make sandbox` need,
// on a machine with Go and nothing else: the binaries of a Kubernetes control plane
// and RabbitMQ brokers of the two supported versions.
//
// What takes long is made once and kept in the user's cache directory. Everything
// that runs listens on loopback only.
package sandbox

// Log shows a step to a person. It is never handed a secret.
type Log = func(format string, args ...any)
