/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

// operatorNamespace is where config/default puts the operator.
const operatorNamespace = "retry-operator-system"

// grantRights applies config/rbac and returns the user that its ServiceAccount is.
func grantRights(ctx context.Context) (rest.ImpersonationConfig, error) {
	root, err := sandbox.RepoRoot()
	if err != nil {
		return rest.ImpersonationConfig{}, err
	}
	if err := k8s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: operatorNamespace}}); err != nil {
		return rest.ImpersonationConfig{}, err
	}
	folder := filepath.Join(root, "config", "rbac")
	var list struct{ Resources []string }
	if err := readYAML(filepath.Join(folder, "kustomization.yaml"), &list); err != nil {
		return rest.ImpersonationConfig{}, err
	}
	account := ""
	for _, name := range list.Resources {
		o := &unstructured.Unstructured{}
		if err := readYAML(filepath.Join(folder, name), &o.Object); err != nil {
			return rest.ImpersonationConfig{}, err
		}
		if err := k8s.Create(ctx, o); err != nil {
			return rest.ImpersonationConfig{}, fmt.Errorf("%s: %w", name, err)
		}
		if o.GetKind() == "ServiceAccount" {
			account = o.GetName()
		}
	}
	if account == "" {
		return rest.ImpersonationConfig{}, errors.New("there is no ServiceAccount")
	}
	return rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + operatorNamespace + ":" + account,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + operatorNamespace, "system:authenticated"},
	}, nil
}

// readYAML reads a file and puts the namespace in as config/default does. The names stay
// without its prefix, which every reference gets as well.
func readYAML(file string, into any) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text := strings.ReplaceAll(string(data), "namespace: system\n", "namespace: "+operatorNamespace+"\n")
	return yaml.Unmarshal([]byte(text), into)
}

func TestTheOperatorMayDoWhatItNeedsAndNoMore(t *testing.T) {
	t.Parallel()
	const group = "rabbitmq.retry-operator.io"
	may := func(verb, group, resource string) authorizationv1.ResourceAttributes {
		resource, sub, _ := strings.Cut(resource, "/")
		return authorizationv1.ResourceAttributes{Namespace: "default", Verb: verb, Group: group, Resource: resource, Subresource: sub}
	}
	within := func(namespace string, a authorizationv1.ResourceAttributes) authorizationv1.ResourceAttributes {
		a.Namespace = namespace
		return a
	}
	called := func(name string, a authorizationv1.ResourceAttributes) authorizationv1.ResourceAttributes {
		a.Namespace, a.Name = "", name
		return a
	}
	cases := map[string]struct {
		action  authorizationv1.ResourceAttributes
		allowed bool
	}{
		"watch policies":                       {may("watch", group, "retrypolicies"), true},
		"set a policy's finalizer":             {may("patch", group, "retrypolicies"), true},
		"patch a policy's status":              {may("patch", group, "retrypolicies/status"), true},
		"replace a policy":                     {may("update", group, "retrypolicies"), false},
		"replace a policy's status":            {may("update", group, "retrypolicies/status"), false},
		"make a policy":                        {may("create", group, "retrypolicies"), false},
		"delete a policy":                      {may("delete", group, "retrypolicies"), false},
		"watch connections":                    {may("watch", group, "brokerconnections"), true},
		"patch a connection's status":          {may("patch", group, "brokerconnections/status"), true},
		"patch a connection":                   {may("patch", group, "brokerconnections"), false},
		"replace a connection's status":        {may("update", group, "brokerconnections/status"), false},
		"read a Secret":                        {may("get", "", "secrets"), true},
		"watch Secrets":                        {may("watch", "", "secrets"), true},
		"make a Secret":                        {may("create", "", "secrets"), false},
		"change a Secret":                      {may("patch", "", "secrets"), false},
		"read the cluster's identity":          {called("kube-system", may("get", "", "namespaces")), true},
		"read another namespace":               {called("default", may("get", "", "namespaces")), false},
		"tell what it did in any namespace":    {may("create", "events.k8s.io", "events"), true},
		"count on an event that it has told":   {may("patch", "events.k8s.io", "events"), true},
		"read events":                          {may("list", "events.k8s.io", "events"), false},
		"hold the lease in its own namespace":  {within(operatorNamespace, may("update", "coordination.k8s.io", "leases")), true},
		"hold a lease in somebody's namespace": {may("update", "coordination.k8s.io", "leases"), false},
		"read what it has no business with":    {may("list", "", "pods"), false},
		"give itself more rights":              {called("manager-role", may("patch", "rbac.authorization.k8s.io", "clusterroles")), false},
		"log in as somebody else":              {called("admin", may("impersonate", "", "users")), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			review := &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &c.action},
			}
			g.Expect(asOperator.Create(t.Context(), review)).To(Succeed())
			g.Expect(review.Status.Allowed).To(Equal(c.allowed), review.Status.Reason)
		})
	}
}

// TestTheAPIServerHoldsTheOperatorToItsRights: what the reviews above say is enforced.
func TestTheAPIServerHoldsTheOperatorToItsRights(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newest())
	meta := metav1.ObjectMeta{Namespace: w.namespace, Name: "mine"}
	err := asOperator.Create(t.Context(), &corev1.Secret{ObjectMeta: meta})
	w.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "creating a Secret: %v", err)
	err = asOperator.Delete(t.Context(), &v1alpha1.BrokerConnection{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "main"}})
	w.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "deleting a connection: %v", err)
	w.Expect(asOperator.List(t.Context(), &v1alpha1.BrokerConnectionList{})).To(Succeed())
}
