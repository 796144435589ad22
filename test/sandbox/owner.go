/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package sandbox

import (
	"errors"
	"io/fs"
	"os"
)

// owner is on whose behalf a broker runs. When the owner is gone the broker is a
// leftover, as after a test run that was killed.
type owner struct {
	Process *Process `json:"process,omitempty"`
	File    string   `json:"file,omitempty"`
}

func thisProcess() owner {
	p, _ := FindProcess(os.Getpid())
	return owner{Process: &p}
}

func (o owner) gone() bool {
	if o.Process != nil {
		return !o.Process.Alive()
	}
	_, err := os.Stat(o.File)
	return errors.Is(err, fs.ErrNotExist)
}
