/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// controlPlaneTimeout is generous: two cores may run several packages' tests at once.
const controlPlaneTimeout = 2 * time.Minute

// CRDDir returns the folder of the operator's generated CustomResourceDefinitions.
func CRDDir() (string, error) {
	root, err := RepoRoot()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, "config", "crd", "bases"), nil
}

// StartEnvtest starts an etcd and a kube-apiserver for one test package, with the
// operator's CRDs and those of crdPaths. Call stop when it returned no error.
func StartEnvtest(ctx context.Context, log Log, crdPaths ...string) (*rest.Config, func() error, error) {
	assets, err := Assets(ctx, log)
	if err != nil {
		return nil, nil, err
	}
	crds, err := CRDDir()
	if err != nil {
		return nil, nil, err
	}
	env := &envtest.Environment{
		BinaryAssetsDirectory:    assets,
		CRDDirectoryPaths:        append([]string{crds}, crdPaths...),
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: controlPlaneTimeout,
		ControlPlaneStopTimeout:  controlPlaneTimeout,
	}
	config, err := env.Start()
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("start the control plane: %w", err), env.Stop())
	}
	return config, env.Stop, nil
}
