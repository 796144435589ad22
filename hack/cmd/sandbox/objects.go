/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

// fieldManager owns what the sandbox applies.
const fieldManager = "sandbox"

// applyObjects applies the CRDs, and the broker's Secret and BrokerConnection.
func (b *box) applyObjects(ctx context.Context, config *rest.Config, broker *sandbox.Broker) error {
	crds, err := sandbox.CRDDir()
	if err != nil {
		return err
	}
	// It also waits until the API server serves them.
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		Paths:              []string{crds},
		ErrorIfPathMissing: true,
		MaxTime:            time.Minute,
	}); err != nil {
		return fmt.Errorf("apply the CRDs: %w", err)
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return fmt.Errorf("make a client of the cluster: %w", err)
	}
	for _, object := range []map[string]any{credentialsSecret(broker), brokerConnection(broker)} {
		u := &unstructured.Unstructured{Object: object}
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(fieldManager), client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("apply the %s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	say("Applied the CRDs, Secret main-credentials and BrokerConnection main")
	return nil
}

func credentialsSecret(broker *sandbox.Broker) map[string]any {
	return map[string]any{
		"apiVersion": "v1",
		"kind":       "Secret",
		"metadata":   map[string]any{"name": "main-credentials", "namespace": "default"},
		"data":       map[string]any{"username": base64Of(broker.Username), "password": base64Of(broker.Password)},
	}
}

func base64Of(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func brokerConnection(broker *sandbox.Broker) map[string]any {
	return map[string]any{
		"apiVersion": "rabbitmq.retry-operator.io/v1alpha1",
		"kind":       "BrokerConnection",
		"metadata":   map[string]any{"name": "main", "namespace": "default"},
		"spec": map[string]any{
			"managementURL":        broker.ManagementURL,
			"amqpURL":              "amqp://" + broker.AMQPAddress(),
			"credentialsSecretRef": map[string]any{"name": "main-credentials"},
			"defaultVhost":         "/",
		},
	}
}
