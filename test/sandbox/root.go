/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

const modulePath = "github.com/retry-operator/rabbitmq-retry-operator"

// RepoRoot returns the folder of the operator's go.mod: the nearest one above the
// working directory, else above this source file.
func RepoRoot() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	if root, ok := moduleRootAbove(wd); ok {
		return root, nil
	}
	// With -trimpath the file is no path on this machine; the walk then finds nothing.
	if _, file, _, ok := runtime.Caller(0); ok {
		if root, ok := moduleRootAbove(filepath.Dir(file)); ok {
			return root, nil
		}
	}
	return "", errors.New("find the repository: no go.mod of " + modulePath + " above " + wd)
}

func moduleRootAbove(dir string) (string, bool) {
	for {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.Contains(data, []byte("module "+modulePath+"\n")) {
			return dir, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}
