/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package controllers

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
)

// verifyAfter is how soon the broker is looked at again after a change.
const verifyAfter = 100 * time.Millisecond

// maxHurry bounds how often in a row a policy may ask for an early look. Whoever undoes
// our writes as fast as we make them gets them back at the poll interval only.
const maxHurry = 5

// pace remembers when each policy wrote to the broker, so that it is not judged by a look
// from before. It is a hint and starts empty: after a restart the first look is new.
type pace struct {
	mu       sync.Mutex
	policies map[types.NamespacedName]*strides
}

type strides struct {
	lastWrite    time.Time
	hurries      int
	failingSince time.Time
}

func (p *pace) of(policy *v1alpha1.RetryPolicy) *strides {
	if p.policies == nil {
		p.policies = map[types.NamespacedName]*strides{}
	}
	key := client.ObjectKeyFromObject(policy)
	s, ok := p.policies[key]
	if !ok {
		s = &strides{}
		p.policies[key] = s
	}
	return s
}

// notBefore is the oldest look that shows what this policy has written.
func (p *pace) notBefore(policy *v1alpha1.RetryPolicy) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of(policy).lastWrite
}

func (p *pace) wrote(policy *v1alpha1.RetryPolicy, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.of(policy)
	s.lastWrite = at
	s.hurries++
}

func (p *pace) settled(policy *v1alpha1.RetryPolicy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of(policy).hurries = 0
}

func (p *pace) hurry(policy *v1alpha1.RetryPolicy) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of(policy).hurries <= maxHurry
}

// failing returns since when the broker has been out of reach for the policy; a success
// starts it anew.
func (p *pace) failing(policy *v1alpha1.RetryPolicy, now time.Time, failed bool) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.of(policy)
	switch {
	case !failed:
		s.failingSince = time.Time{}
	case s.failingSince.IsZero():
		s.failingSince = now
	}
	return s.failingSince
}

func (p *pace) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.policies, key)
}
