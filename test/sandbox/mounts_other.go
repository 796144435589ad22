//go:build !linux

/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package sandbox

import "syscall"

// Only Linux runs brokers in a chroot, see missingForChroot.
func privateMounts() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func canUnshare() bool { return false }
