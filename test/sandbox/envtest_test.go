/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package sandbox

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/discovery"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestStartEnvtest(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real API server")
	}
	ctrl.SetLogger(logr.Discard())
	started := time.Now()
	config, stop, err := StartEnvtest(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the API server answered after %s", time.Since(started))
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.ServerResourcesForGroupVersion("rabbitmq.retry-operator.io/v1alpha1"); err != nil {
		t.Errorf("the operator's CRDs are not served: %v", err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
