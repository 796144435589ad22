/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/plan"
)

// Fields of the cache's indexes.
const (
	indexBrokerRef   = ".spec.brokerRef.name"
	indexQueue       = ".spec.queue"
	indexCredentials = ".spec.credentialsSecretRef.name"
)

// AddIndexes lets the cache find policies by connection and by queue, and connections by
// Secret.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	policyIndex := func(field func(*v1alpha1.RetryPolicy) string) client.IndexerFunc {
		return func(o client.Object) []string {
			if p, ok := o.(*v1alpha1.RetryPolicy); ok {
				return []string{field(p)}
			}
			return nil
		}
	}
	err := indexer.IndexField(ctx, &v1alpha1.RetryPolicy{}, indexBrokerRef,
		policyIndex(func(p *v1alpha1.RetryPolicy) string { return p.Spec.BrokerRef.Name }))
	if err != nil {
		return fmt.Errorf("index policies by connection: %w", err)
	}
	err = indexer.IndexField(ctx, &v1alpha1.RetryPolicy{}, indexQueue,
		policyIndex(func(p *v1alpha1.RetryPolicy) string { return p.Spec.Queue }))
	if err != nil {
		return fmt.Errorf("index policies by queue: %w", err)
	}
	err = indexer.IndexField(ctx, &v1alpha1.BrokerConnection{}, indexCredentials, func(o client.Object) []string {
		if b, ok := o.(*v1alpha1.BrokerConnection); ok {
			return []string{b.Spec.CredentialsSecretRef.Name}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("index connections by Secret: %w", err)
	}
	return nil
}

// SetupWithManager watches policies, and the connections and Secrets they depend on.
func (r *RetryPolicyReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.RetryPolicy{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.BrokerConnection{}, handler.EnqueueRequestsFromMapFunc(r.policiesOfConnection),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.policiesOfSecret)).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Concurrency}).
		Complete(r)
}

func (r *RetryPolicyReconciler) policiesOfConnection(ctx context.Context, o client.Object) []reconcile.Request {
	policies := &v1alpha1.RetryPolicyList{}
	if err := r.List(ctx, policies, client.InNamespace(o.GetNamespace()), client.MatchingFields{indexBrokerRef: o.GetName()}); err != nil {
		return nil
	}
	return requestsFor(policies.Items, func(p v1alpha1.RetryPolicy) types.NamespacedName { return client.ObjectKeyFromObject(&p) })
}

func (r *RetryPolicyReconciler) policiesOfSecret(ctx context.Context, o client.Object) []reconcile.Request {
	var out []reconcile.Request
	for _, c := range connectionsOfSecret(ctx, r.Client, o) {
		out = append(out, r.policiesOfConnection(ctx, &c)...)
	}
	return out
}

func connectionsOfSecret(ctx context.Context, reader client.Reader, secret client.Object) []v1alpha1.BrokerConnection {
	connections := &v1alpha1.BrokerConnectionList{}
	err := reader.List(ctx, connections, client.InNamespace(secret.GetNamespace()), client.MatchingFields{indexCredentials: secret.GetName()})
	if err != nil {
		return nil
	}
	return connections.Items
}

func requestsFor[T any](items []T, key func(T) types.NamespacedName) []reconcile.Request {
	out := make([]reconcile.Request, 0, len(items))
	for i := range items {
		out = append(out, reconcile.Request{NamespacedName: key(items[i])})
	}
	return out
}

// yieldToElder keeps two policies of this cluster that want the same queue from racing for
// it: while nobody has claimed it on the broker, the older goes first. Once it is claimed
// the broker's word counts.
func (r *RetryPolicyReconciler) yieldToElder(ctx context.Context, s *scope) error {
	if s.ladder.Request.Deleting || !claims(s) {
		return nil
	}
	rivals := &v1alpha1.RetryPolicyList{}
	if err := r.List(ctx, rivals, client.MatchingFields{indexQueue: s.policy.Spec.Queue}); err != nil {
		return fmt.Errorf("list policies of the same queue: %w", err)
	}
	for i := range rivals.Items {
		rival := &rivals.Items[i]
		if rival.UID != s.policy.UID && rival.DeletionTimestamp.IsZero() && older(rival, s.policy) && r.sameTarget(ctx, s, rival) {
			return &failure{
				reason: v1alpha1.ReasonTargetClaimed,
				message: fmt.Sprintf("queue %q already has the older RetryPolicy %s/%s; one policy can drive a queue, so delete one of the two",
					s.policy.Spec.Queue, rival.Namespace, rival.Name),
			}
		}
	}
	return nil
}

// claims reports whether the plan takes a target on which this policy has nothing yet.
func claims(s *scope) bool {
	return len(s.plan.Steps) > 0 && len(s.snapshot.Topology.OwnedExchanges(s.ladder.Request.Owner)) == 0 && s.plan.Steps[0].Action == plan.DeclareExchange && s.plan.Steps[0].Object() == s.ladder.Park
}

// older orders two policies: by age, then by name.
func older(a, b *v1alpha1.RetryPolicy) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Namespace+"/"+a.Name < b.Namespace+"/"+b.Name
}

// sameTarget compares by management URL, which tells most brokers apart. For two that are
// one the owner argument on the broker decides.
func (r *RetryPolicyReconciler) sameTarget(ctx context.Context, s *scope, rival *v1alpha1.RetryPolicy) bool {
	connection := &v1alpha1.BrokerConnection{}
	if err := r.Get(ctx, connectionKey(rival), connection); err != nil {
		return false
	}
	return connection.Spec.ManagementURL == s.conn.Object.Spec.ManagementURL &&
		rival.Spec.EffectiveVhost(connection.Spec.EffectiveDefaultVhost()) == s.vhost
}
