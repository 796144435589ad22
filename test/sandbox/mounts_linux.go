/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package sandbox

import (
	"os/exec"
	"sync"
	"syscall"
)

// privateMounts lets a command mount file systems that nothing else on the machine
// sees, where the kernel allows that: in some containers root may not.
func privateMounts() *syscall.SysProcAttr {
	if !canUnshare() {
		return &syscall.SysProcAttr{}
	}
	return &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
}

var canUnshare = sync.OnceValue(func() bool {
	cmd := exec.Command("true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	return cmd.Run() == nil
})
