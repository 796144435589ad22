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

const (
	kubernetesModule = "k8s.io/kubernetes"
	etcdModule       = "go.etcd.io/etcd/server/v3"
)

// Assets returns a folder with etcd, kube-apiserver and kubectl: KUBEBUILDER_ASSETS
// where it is set, else binaries built once from the module in hack/sandbox.
func Assets(ctx context.Context, log Log) (string, error) {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		return dir, nil
	}
	root, err := RepoRoot()
	if err != nil {
		return "", err
	}
	module := filepath.Join(root, "hack", "sandbox")
	v, err := readAssetVersions(filepath.Join(module, "go.mod"))
	if err != nil {
		return "", err
	}
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	return cached(ctx, log, cache, v.key(), func(tmp string) error {
		for _, b := range v.binaries() {
			if err := b.build(ctx, log, module, tmp); err != nil {
				return err
			}
		}
		return nil
	})
}

// assetVersions are the versions without their leading v.
type assetVersions struct{ kubernetes, etcd string }

func readAssetVersions(goMod string) (assetVersions, error) {
	data, err := os.ReadFile(goMod)
	if err != nil {
		return assetVersions{}, fmt.Errorf("read the control plane's versions: %w", err)
	}
	var v assetVersions
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || !strings.HasPrefix(fields[1], "v") {
			continue
		}
		switch fields[0] {
		case kubernetesModule:
			v.kubernetes = fields[1][1:]
		case etcdModule:
			v.etcd = fields[1][1:]
		}
	}
	if v.kubernetes == "" || v.etcd == "" {
		return v, errors.New("read the control plane's versions: " + goMod + " lacks " + kubernetesModule + " or " + etcdModule)
	}
	return v, nil
}

func (v assetVersions) key() string {
	return fmt.Sprintf("kubernetes-%s-etcd-%s-%s-%s", v.kubernetes, v.etcd, runtime.GOOS, runtime.GOARCH)
}

// binary is one program of the control plane.
type binary struct{ name, version, pkg, ldflags, duration string }

func (v assetVersions) binaries() []binary {
	stamped := "-s -w " + v.stamps("k8s.io/component-base/version") + " " + v.stamps("k8s.io/client-go/pkg/version")
	return []binary{
		{"etcd", v.etcd, etcdModule, "-s -w", "about two minutes"},
		{"kube-apiserver", v.kubernetes, "k8s.io/kubernetes/cmd/kube-apiserver", stamped, "about ten minutes"},
		{"kubectl", v.kubernetes, "k8s.io/kubernetes/cmd/kubectl", stamped, "about two minutes"},
	}
}

// stamps are the linker flags by which an API server knows its version. Without them
// it calls itself v0.0.0 and clients refuse to work with it.
func (v assetVersions) stamps(pkg string) string {
	parts := append(strings.SplitN(v.kubernetes, ".", 3), "0", "0")
	values := [][2]string{
		{"gitVersion", "v" + v.kubernetes},
		{"gitMajor", parts[0]},
		{"gitMinor", parts[1]},
		{"gitCommit", "v" + v.kubernetes},
		{"gitTreeState", "clean"},
	}
	flags := make([]string, 0, len(values))
	for _, kv := range values {
		flags = append(flags, fmt.Sprintf("-X %s.%s=%s", pkg, kv[0], kv[1]))
	}
	return strings.Join(flags, " ")
}

func (b binary) build(ctx context.Context, log Log, module, dir string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", b.ldflags, "-o", filepath.Join(dir, b.name), b.pkg)
	cmd.Dir = module
	// The caller's flags and workspace are for the operator, not for this module.
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	title := fmt.Sprintf("Building %s %s (%s once, then cached)", b.name, b.version, b.duration)
	if err := runLong(ctx, log, title, cmd); err != nil {
		return fmt.Errorf("build %s: %w", b.name, err)
	}
	return nil
}
