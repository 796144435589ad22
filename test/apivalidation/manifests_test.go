/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package apivalidation

import (
	"maps"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// object returns the object that the manifest says, with changes merged into
// its spec. A null in changes removes a field.
func object(t *testing.T, manifest, changes string) *unstructured.Unstructured {
	t.Helper()

	fields := decode(t, manifest)
	spec, _ := fields["spec"].(map[string]any)
	fields["spec"] = merge(spec, decode(t, changes))

	return &unstructured.Unstructured{Object: fields}
}

// decode returns the fields in a YAML text, with whole numbers as int64, as an
// Unstructured must have them.
func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	g := NewWithT(t)

	asJSON, err := yaml.YAMLToJSON([]byte(text))
	g.Expect(err).NotTo(HaveOccurred())

	var fields map[string]any
	g.Expect(json.Unmarshal(asJSON, &fields)).To(Succeed())

	return fields
}

// merge returns base with changes, which win. A nil in changes removes a field.
func merge(base, changes map[string]any) map[string]any {
	merged := maps.Clone(base)
	if merged == nil {
		merged = map[string]any{}
	}

	for key, change := range changes {
		switch change := change.(type) {
		case nil:
			delete(merged, key)
		case map[string]any:
			inner, _ := merged[key].(map[string]any)
			merged[key] = merge(inner, change)
		default:
			merged[key] = change
		}
	}

	return merged
}

// beRefusedWith matches the error of an object that a rule refuses with the message.
func beRefusedWith(message string) types.GomegaMatcher {
	return SatisfyAll(
		WithTransform(apierrors.IsInvalid, BeTrue()),
		MatchError(ContainSubstring(message)),
	)
}
