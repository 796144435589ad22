/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package apivalidation

import (
	"context"
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

var (
	// config is how the tests reach the API server that TestMain starts.
	config *rest.Config

	// server is a client of that API server.
	server client.Client
)

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

// run is apart from TestMain so that the control plane is stopped before the
// process exits.
func run(m *testing.M) int {
	started, stop, err := sandbox.StartEnvtest(context.Background(), func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, format+"\n", args...)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the API server:", err)

		return 1
	}

	code := 1

	config = started
	if server, err = newClient(config); err != nil {
		fmt.Fprintln(os.Stderr, "make a client:", err)
	} else {
		code = m.Run()
	}

	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stop the API server:", err)

		return 1
	}

	return code
}

func newClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		v1alpha1.AddToScheme, corev1.AddToScheme, apiextensionsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}

	return client.New(config, client.Options{Scheme: scheme})
}
