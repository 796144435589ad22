/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

// Package apivalidation tests the rules of the API on a real API server: every
// rule of a schema has an object that it accepts and one that it refuses, with
// the message that a person gets to read.
package apivalidation
