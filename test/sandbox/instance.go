/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// instance is the folder <tree>/srv/<name> of one broker, and what runs out of it.
type instance struct {
	dir string

	Owner  owner   `json:"owner"`
	Node   Node    `json:"node"`
	Broker Process `json:"broker"`
	EPMD   Process `json:"epmd"`
}

// createInstance removes leftovers and makes the folder of a new instance. The lock
// keeps two processes from taking each other's half-made folder for a leftover.
func createInstance(ctx context.Context, log Log, tree string, o owner, node Node) (*instance, error) {
	unlock, err := Lock(ctx, log, filepath.Join(filepath.Dir(tree), "instances.lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := removeStaleInstances(ctx, log, filepath.Dir(tree)); err != nil {
		return nil, err
	}
	name, _, _ := strings.Cut(node.Name, "@")
	i := &instance{dir: filepath.Join(tree, "srv", name), Owner: o, Node: node}
	if err := os.Mkdir(i.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the broker's folder: %w", err)
	}
	return i, i.save()
}

func removeStaleInstances(ctx context.Context, log Log, cache string) error {
	dirs, err := filepath.Glob(filepath.Join(cache, "rabbitmq-*", "srv", "rabbit-*"))
	if err != nil {
		return fmt.Errorf("list leftover brokers: %w", err)
	}
	for _, dir := range dirs {
		i, err := loadInstance(dir)
		if err == nil && !i.Owner.gone() {
			continue
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		log("Removing the leftover broker %s", filepath.Base(dir))
		if err := i.remove(ctx); err != nil {
			return err
		}
	}
	return nil
}

// loadInstance returns an instance with nothing but its folder along with the error.
func loadInstance(dir string) (*instance, error) {
	i := &instance{dir: dir}
	data, err := os.ReadFile(i.file())
	if err != nil {
		return i, fmt.Errorf("read the broker's state: %w", err)
	}
	if err := json.Unmarshal(data, i); err != nil {
		return i, fmt.Errorf("read the broker's state in %s: %w", i.file(), err)
	}
	return i, nil
}

func (i *instance) file() string { return filepath.Join(i.dir, "instance.json") }

func (i *instance) save() error {
	if err := WriteJSON(i.file(), i); err != nil {
		return fmt.Errorf("write the broker's state: %w", err)
	}
	return nil
}

// remove ends what runs out of the folder and deletes it.
func (i *instance) remove(ctx context.Context) error {
	for _, p := range []Process{i.Broker, i.EPMD} {
		if err := p.KillGroup(ctx); err != nil {
			return fmt.Errorf("end the broker %s: %w", filepath.Base(i.dir), err)
		}
	}
	// Helpers of a killed broker may still be writing for a moment.
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var last error
	err := Poll(ctx, 100*time.Millisecond, func() (bool, error) {
		last = os.RemoveAll(i.dir)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("remove the broker's data: %w", last)
	}
	return nil
}

// WriteJSON writes v to path for its owner's eyes only, all of it or nothing.
func WriteJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	tmp := path + ".tmp" + strconv.Itoa(os.Getpid())
	if err := os.WriteFile(tmp, append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
