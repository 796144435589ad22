/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package apivalidation

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// minimalConnection is the shortest BrokerConnection that is accepted.
const minimalConnection = `
apiVersion: rabbitmq.retry-operator.io/v1alpha1
kind: BrokerConnection
metadata: {name: main, namespace: default}
spec:
  managementURL: https://rabbitmq.example.com:15671
  credentialsSecretRef: {name: broker}
`

func TestBrokerConnectionCreate(t *testing.T) {
	const (
		notHTTP     = "managementURL must be an http or https URL with a host, such as https://rabbitmq.example.com:15671"
		mgmtSecret  = "managementURL must not contain credentials: put them into the Secret that credentialsSecretRef names"
		mgmtTail    = "managementURL must have no query and no fragment"
		notAMQP     = "amqpURL must be an amqp or amqps URL with a host, such as amqps://rabbitmq.example.com:5671"
		amqpSecret  = "amqpURL must not contain credentials: put them into the Secret that credentialsSecretRef names"
		amqpTail    = "amqpURL must end after the port: give the virtual host as defaultVhost"
		vhostTooBig = "defaultVhost is too long: RabbitMQ takes at most 255 bytes"
	)

	tests := map[string]specCase{
		"the minimal connection is accepted": {},

		"a missing managementURL is refused":  {`managementURL: null`, "spec.managementURL: Required value"},
		"an empty managementURL is refused":   {`managementURL: ""`, notHTTP},
		"an http URL is accepted":             {`managementURL: http://rabbitmq:15672`, ""},
		"an https URL without a port":         {`managementURL: https://rabbitmq.example.com`, ""},
		"a URL that ends in a slash":          {`managementURL: http://rabbitmq:15672/`, ""},
		"a path prefix is accepted":           {`managementURL: https://example.com/tools/rabbitmq`, ""},
		"a path prefix with an @ is accepted": {`managementURL: https://example.com/@tools`, ""},
		"an IPv6 address is accepted":         {`managementURL: "http://[::1]:15672"`, ""},
		"an amqp URL is no management URL":    {`managementURL: amqp://rabbitmq:5672`, notHTTP},
		"a host without a scheme":             {`managementURL: rabbitmq:15672`, notHTTP},
		"a path without a host":               {`managementURL: /rabbitmq`, notHTTP},
		"a scheme without a host":             {`managementURL: "http:///path"`, notHTTP},
		"a port without a host":               {`managementURL: "http://:15672"`, notHTTP},
		"text that is no URL":                 {`managementURL: the broker`, notHTTP},
		"user and password in the URL":        {`managementURL: "http://user:secret@rabbitmq:15672"`, mgmtSecret},
		"a user alone in the URL":             {`managementURL: "http://user@rabbitmq:15672/x"`, mgmtSecret},
		"a query in the URL":                  {`managementURL: "http://rabbitmq:15672/?vhost=a"`, mgmtTail},
		"an empty query in the URL":           {`managementURL: "http://rabbitmq:15672?"`, mgmtTail},
		"a fragment in the URL":               {`managementURL: "http://rabbitmq:15672/#/queues"`, mgmtTail},
		"a managementURL of 1024 characters":  {`managementURL: http://rabbitmq/` + strings.Repeat("a", 1024-16), ""},
		"a managementURL of 1025 characters":  {`managementURL: http://rabbitmq/` + strings.Repeat("a", 1025-16), "spec.managementURL: Too long"},

		"an amqp URL is accepted":          {`amqpURL: amqp://rabbitmq:5672`, ""},
		"an amqps URL without a port":      {`amqpURL: amqps://rabbitmq.example.com`, ""},
		"an amqp URL that ends in a slash": {`amqpURL: amqp://rabbitmq:5672/`, ""},
		"an empty amqpURL is refused":      {`amqpURL: ""`, notAMQP},
		"an http URL is no amqpURL":        {`amqpURL: http://rabbitmq:15672`, notAMQP},
		"an amqpURL without a host":        {`amqpURL: "amqp://:5672"`, notAMQP},
		"user and password in the amqpURL": {`amqpURL: "amqp://user:secret@rabbitmq:5672"`, amqpSecret},
		"a virtual host in the amqpURL":    {`amqpURL: amqp://rabbitmq:5672/shop`, amqpTail},
		"an encoded one in the amqpURL":    {`amqpURL: amqp://rabbitmq:5672/%2f`, amqpTail},
		"a query in the amqpURL":           {`amqpURL: "amqp://rabbitmq:5672?heartbeat=10"`, amqpTail},
		"a query after a slash":            {`amqpURL: "amqp://rabbitmq:5672/?heartbeat=10"`, amqpTail},
		"a fragment in the amqpURL":        {`amqpURL: "amqp://rabbitmq:5672/#a"`, amqpTail},
		"an amqpURL of 1025 characters":    {`amqpURL: amqp://` + strings.Repeat("a", 1025-7), "spec.amqpURL: Too long"},

		"a missing credentialsSecretRef":           {`credentialsSecretRef: null`, "spec.credentialsSecretRef: Required value"},
		"a credentialsSecretRef without a name":    {`credentialsSecretRef: {name: null}`, "spec.credentialsSecretRef.name: Required value"},
		"a credentialsSecretRef with empty name":   {`credentialsSecretRef: {name: ""}`, "spec.credentialsSecretRef.name: Invalid value"},
		"a credentialsSecretRef of 253 characters": {`credentialsSecretRef: {name: ` + strings.Repeat("a", 253) + `}`, ""},
		"a credentialsSecretRef of 254 characters": {`credentialsSecretRef: {name: ` + strings.Repeat("a", 254) + `}`, "spec.credentialsSecretRef.name: Too long"},

		"a defaultVhost is accepted":       {`defaultVhost: shop`, ""},
		"an empty defaultVhost is refused": {`defaultVhost: ""`, "spec.defaultVhost: Invalid value"},
		"a defaultVhost of 255 bytes":      {`defaultVhost: ` + strings.Repeat("é", 127) + `a`, ""},
		"a defaultVhost of 256 bytes":      {`defaultVhost: ` + strings.Repeat("é", 128), vhostTooBig},
		"a defaultVhost of 256 characters": {`defaultVhost: ` + strings.Repeat("a", 256), "spec.defaultVhost: Too long"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := server.Create(t.Context(), object(t, minimalConnection, tt.changes), client.DryRunAll)

			if tt.refused != "" {
				g.Expect(err).To(beRefusedWith(tt.refused))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
			}
		})
	}
}

func TestBrokerConnectionUpdate(t *testing.T) {
	const vhostStays = "defaultVhost cannot be changed, since policies that name no vhost would move: create another BrokerConnection, or name the vhost in the policy"

	tests := map[string]struct {
		before string
		specCase
	}{
		"the defaultVhost can't be changed":         {`defaultVhost: shop`, specCase{`defaultVhost: shop2`, vhostStays}},
		"the defaultVhost can't be set later":       {``, specCase{`defaultVhost: shop`, vhostStays}},
		"the defaultVhost can't be unset later":     {`defaultVhost: shop`, specCase{`defaultVhost: null`, vhostStays}},
		"the default can be named":                  {``, specCase{`defaultVhost: /`, ""}},
		"the address and the Secret can be changed": {``, specCase{`{managementURL: "http://rabbitmq:15672", credentialsSecretRef: {name: other}}`, ""}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { checkUpdate(t, minimalConnection, tt.before, tt.specCase) })
	}
}
