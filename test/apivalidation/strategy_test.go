/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package apivalidation

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// schemaTimeout is how long the server may take to use a changed schema.
const schemaTimeout = 30 * time.Second

// TestStrategyStays shows that a strategy can't be changed. There is only one
// yet, so the test gives the server's copy of the schema a second one for a while.
func TestStrategyStays(t *testing.T) {
	g := NewWithT(t)
	// The cleanup needs one that outlives the test's.
	ctx := context.WithoutCancel(t.Context())

	other := func() error {
		return server.Create(ctx, object(t, minimalPolicy, `strategy: Other`), client.DryRunAll)
	}

	g.Eventually(allowStrategies(ctx, `"Ladder"`, `"Other"`), schemaTimeout).Should(Succeed())
	t.Cleanup(func() {
		g.Eventually(allowStrategies(ctx, `"Ladder"`), schemaTimeout).Should(Succeed())
		g.Eventually(other, schemaTimeout).Should(beRefusedWith("spec.strategy: Unsupported value"))
	})
	g.Eventually(other, schemaTimeout).Should(Succeed())

	const stays = "strategy cannot be changed, since it changes what consumers must do: create another RetryPolicy"

	tests := map[string]struct {
		before string
		specCase
	}{
		"another one can't become the default by name": {`strategy: Other`, specCase{`strategy: Ladder`, stays}},
		"another one can't be unset":                   {`strategy: Other`, specCase{`strategy: null`, stays}},
		"the default can't become another one":         {``, specCase{`strategy: Other`, stays}},
		"another one may stay":                         {`strategy: Other`, specCase{`maxAttempts: 5`, ""}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { updatePolicy(t, tt.before, tt.specCase) })
	}
}

// allowStrategies returns an attempt to make these the values that the server
// takes for spec.strategy.
func allowStrategies(ctx context.Context, values ...string) func() error {
	return func() error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := server.Get(ctx, client.ObjectKey{Name: "retrypolicies.rabbitmq.retry-operator.io"}, crd); err != nil {
			return err
		}

		spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		strategy := spec.Properties["strategy"]
		strategy.Enum = nil

		for _, value := range values {
			strategy.Enum = append(strategy.Enum, apiextensionsv1.JSON{Raw: []byte(value)})
		}

		spec.Properties["strategy"] = strategy

		return server.Update(ctx, crd)
	}
}
