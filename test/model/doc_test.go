/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

// Package model holds internal/deadletter against real brokers: what it predicts for a
// topology and a message is what RabbitMQ does with a real message.
package model
