/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package controllers

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/broker"
)

// Connections turns BrokerConnections into clients, and keeps each client until the
// connection or its Secret changes.
type Connections struct {
	// Reader is the manager's cache. Of Secrets it holds metadata only.
	Reader client.Reader
	// Secrets reads a Secret's data from the API server, once for each of its versions.
	Secrets client.Reader
	// Observer forgets what it knows of a client that is replaced.
	Observer *broker.Observer

	mu    sync.Mutex
	known map[types.NamespacedName]connected
}

// connected is a client and the versions of the two objects that it was made from.
type connected struct {
	uid        types.UID
	generation int64
	secret     string
	client     *broker.Client
	username   string
	password   string
}

// Connection is a BrokerConnection with its client.
type Connection struct {
	Object *v1alpha1.BrokerConnection
	Client *broker.Client
	// Username and Password are for AMQP; the client has its own copy.
	Username string
	Password string
}

// Get returns the connection of a name. A *failure says what is missing for it.
func (c *Connections) Get(ctx context.Context, key types.NamespacedName) (*Connection, error) {
	object := &v1alpha1.BrokerConnection{}
	if err := c.Reader.Get(ctx, key, object); err != nil {
		c.forget(key)
		return nil, notFoundAs(err, v1alpha1.ReasonBrokerConnectionNotFound,
			"BrokerConnection %q does not exist in namespace %q; create it, or correct spec.brokerRef.name", key.Name, key.Namespace)
	}
	secretKey := types.NamespacedName{Namespace: key.Namespace, Name: object.Spec.CredentialsSecretRef.Name}
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := c.Reader.Get(ctx, secretKey, secret); err != nil {
		c.forget(key)
		return nil, notFoundAs(err, v1alpha1.ReasonCredentialsNotFound,
			"Secret %q does not exist in namespace %q; create it with the keys username and password", secretKey.Name, key.Namespace)
	}
	made, err := c.client(ctx, key, object, secret)
	if err != nil {
		return nil, err
	}
	return &Connection{Object: object, Client: made.client, Username: made.username, Password: made.password}, nil
}

// client returns the client that is known for these versions, or makes one.
func (c *Connections) client(ctx context.Context, key types.NamespacedName, object *v1alpha1.BrokerConnection, secret *metav1.PartialObjectMetadata) (connected, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	version := string(secret.UID) + "/" + secret.ResourceVersion
	have, ok := c.known[key]
	if ok && have.uid == object.UID && have.generation == object.Generation && have.secret == version {
		return have, nil
	}
	username, password, err := c.credentials(ctx, client.ObjectKeyFromObject(secret))
	if err != nil {
		return connected{}, err
	}
	made, err := broker.NewClient(broker.Config{ManagementURL: object.Spec.ManagementURL, Username: username, Password: password})
	if err != nil {
		return connected{}, &failure{reason: v1alpha1.ReasonBrokerUnreachable, message: err.Error()}
	}
	if ok {
		c.Observer.Forget(have.client)
	}
	if c.known == nil {
		c.known = map[types.NamespacedName]connected{}
	}
	c.known[key] = connected{
		uid: object.UID, generation: object.Generation, secret: version,
		client: made, username: username, password: password,
	}
	return c.known[key], nil
}

func (c *Connections) credentials(ctx context.Context, key types.NamespacedName) (username, password string, err error) {
	secret := &corev1.Secret{}
	if err := c.Secrets.Get(ctx, key, secret); err != nil {
		return "", "", notFoundAs(err, v1alpha1.ReasonCredentialsNotFound,
			"Secret %q does not exist in namespace %q; create it with the keys username and password", key.Name, key.Namespace)
	}
	for _, k := range []string{v1alpha1.CredentialsUsernameKey, v1alpha1.CredentialsPasswordKey} {
		if len(secret.Data[k]) == 0 {
			return "", "", &failure{
				reason:  v1alpha1.ReasonCredentialsNotFound,
				message: fmt.Sprintf("Secret %q has no value for the key %s; add it", key.Name, k),
			}
		}
	}
	return string(secret.Data[v1alpha1.CredentialsUsernameKey]), string(secret.Data[v1alpha1.CredentialsPasswordKey]), nil
}

func (c *Connections) forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if have, ok := c.known[key]; ok {
		c.Observer.Forget(have.client)
		delete(c.known, key)
	}
}

// notFoundAs makes a failure of a NotFound and leaves every other error as it is.
func notFoundAs(err error, reason, format string, args ...any) error {
	if apierrors.IsNotFound(err) {
		return &failure{reason: reason, message: fmt.Sprintf(format, args...)}
	}
	return err
}
