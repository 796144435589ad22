/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package apivalidation

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
)

// minimalPolicy is the shortest RetryPolicy with retries that is accepted.
const minimalPolicy = `
apiVersion: rabbitmq.retry-operator.io/v1alpha1
kind: RetryPolicy
metadata: {name: orders, namespace: default}
spec:
  brokerRef: {name: main}
  queue: orders
  maxAttempts: 4
  backoff: {tiers: [{delay: 10s}, {delay: 1m}]}
`

// badDelay is what a person reads who wrote a delay that is refused.
const badDelay = "delay must be between 100ms and 168h, written like 500ms, 10s, 1m30s or 2h (a day is 24h)"

// specCase is a spec, as changes to a minimal one, and the message that it is
// refused with. Without a message it is accepted.
type specCase struct {
	changes string
	refused string
}

func TestRetryPolicyCreate(t *testing.T) {
	tests := map[string]specCase{
		"the minimal policy is accepted": {},

		"a missing spec.brokerRef is refused":   {`brokerRef: null`, "spec.brokerRef: Required value"},
		"a brokerRef without a name is refused": {`brokerRef: {name: null}`, "spec.brokerRef.name: Required value"},
		"a brokerRef with an empty name":        {`brokerRef: {name: ""}`, "spec.brokerRef.name: Invalid value"},
		"a brokerRef of 253 characters":         {`brokerRef: {name: ` + strings.Repeat("a", 253) + `}`, ""},
		"a brokerRef of 254 characters is too long": {
			`brokerRef: {name: ` + strings.Repeat("a", 254) + `}`, "spec.brokerRef.name: Too long",
		},

		"a vhost is accepted":            {`vhost: shop`, ""},
		"the vhost / is accepted":        {`vhost: /`, ""},
		"an empty vhost is refused":      {`vhost: ""`, "spec.vhost: Invalid value"},
		"a vhost of 255 bytes":           {`vhost: ` + strings.Repeat("é", 127) + `a`, ""},
		"a vhost of 256 bytes":           {`vhost: ` + strings.Repeat("é", 128), "vhost is too long: RabbitMQ takes at most 255 bytes"},
		"a vhost of 256 characters":      {`vhost: ` + strings.Repeat("a", 256), "spec.vhost: Too long"},
		"a missing queue is refused":     {`queue: null`, "spec.queue: Required value"},
		"an empty queue is refused":      {`queue: ""`, "spec.queue: Invalid value"},
		"a queue with any characters":    {`queue: "orders / €: #1*"`, ""},
		"a queue of 255 characters":      {`queue: ` + strings.Repeat("a", 255), ""},
		"a queue of 256 characters":      {`queue: ` + strings.Repeat("a", 256), "spec.queue: Too long"},
		"a queue of 255 bytes":           {`queue: ` + strings.Repeat("€", 85), ""},
		"a queue of 256 bytes":           {`queue: ` + strings.Repeat("€", 85) + `a`, "queue is too long: RabbitMQ takes at most 255 bytes"},
		"a queue of RabbitMQ's own":      {`queue: amq.gen-1`, "queue must not begin with amq., which RabbitMQ keeps for itself"},
		"a queue that begins with amqp":  {`queue: amqp.orders`, ""},
		"a queue with amq. further back": {`queue: my.amq.orders`, ""},

		"the strategy Ladder is accepted":      {`strategy: Ladder`, ""},
		"a strategy that does not exist":       {`strategy: Magic`, `spec.strategy: Unsupported value: "Magic": supported values: "Ladder"`},
		"the queue type quorum is accepted":    {`queueType: quorum`, ""},
		"the queue type classic is accepted":   {`queueType: classic`, ""},
		"a queue type that does not exist":     {`queueType: stream`, `spec.queueType: Unsupported value: "stream": supported values: "quorum", "classic"`},
		"the deletion policy Retain":           {`deletionPolicy: Retain`, ""},
		"the deletion policy Delete":           {`deletionPolicy: Delete`, ""},
		"a deletion policy that doesn't exist": {`deletionPolicy: Orphan`, `spec.deletionPolicy: Unsupported value: "Orphan": supported values: "Retain", "Delete"`},

		"a missing maxAttempts is refused":            {`maxAttempts: null`, "spec.maxAttempts: Required value"},
		"no attempt is refused":                       {`maxAttempts: 0`, "spec.maxAttempts: Invalid value: 0"},
		"one attempt needs no backoff":                {`{maxAttempts: 1, backoff: null}`, ""},
		"one attempt with a tier":                     {`{maxAttempts: 1, backoff: {tiers: [{delay: 1s}]}}`, "more tiers than retries: give at most maxAttempts - 1 tiers"},
		"32 attempts are accepted":                    {`maxAttempts: 32`, ""},
		"33 attempts are refused":                     {`maxAttempts: 33`, "spec.maxAttempts: Invalid value: 33"},
		"two attempts without a backoff":              {`{maxAttempts: 2, backoff: null}`, "backoff.tiers must give at least one delay when maxAttempts is more than 1"},
		"a backoff without tiers":                     {`backoff: {tiers: null}`, "spec.backoff.tiers: Required value"},
		"a backoff with an empty list of tiers":       {`backoff: {tiers: []}`, "spec.backoff.tiers: Invalid value"},
		"as many tiers as retries":                    {`{maxAttempts: 3, backoff: {tiers: [{delay: 1s}, {delay: 2s}]}}`, ""},
		"one tier more than retries":                  {`{maxAttempts: 3, backoff: {tiers: [{delay: 1s}, {delay: 2s}, {delay: 3s}]}}`, "more tiers than retries"},
		"31 tiers with 32 attempts":                   {`{maxAttempts: 32, backoff: {tiers: [` + strings.Repeat("{delay: 1s},", 31) + `]}}`, ""},
		"32 tiers are too many":                       {`{maxAttempts: 32, backoff: {tiers: [` + strings.Repeat("{delay: 1s},", 32) + `]}}`, "spec.backoff.tiers: Too many: 32: must have at most 31 items"},
		"a tier without a delay":                      {`backoff: {tiers: [{}]}`, "spec.backoff.tiers[0].delay: Required value"},
		"tiers need not grow, and may be equal":       {`backoff: {tiers: [{delay: 10s}, {delay: 1s}, {delay: 1s}]}`, ""},
		"a parking lot that names nothing":            {`parkingLot: {}`, ""},
		"a parking lot with a name":                   {`parkingLot: {queueName: orders.failed}`, ""},
		"a parking lot with an empty name":            {`parkingLot: {queueName: ""}`, "spec.parkingLot.queueName: Invalid value"},
		"a parking lot of 255 bytes":                  {`parkingLot: {queueName: ` + strings.Repeat("é", 127) + `a}`, ""},
		"a parking lot of 256 bytes":                  {`parkingLot: {queueName: ` + strings.Repeat("é", 128) + `}`, "parkingLot.queueName is too long: RabbitMQ takes at most 255 bytes"},
		"a parking lot of 256 characters":             {`parkingLot: {queueName: ` + strings.Repeat("a", 256) + `}`, "spec.parkingLot.queueName: Too long"},
		"a parking lot of RabbitMQ's own":             {`parkingLot: {queueName: amq.parked}`, "parkingLot.queueName must not begin with amq."},
		"a parking lot that is the queue":             {`parkingLot: {queueName: orders}`, "parkingLot.queueName must differ from queue"},
		"an alert at one message":                     {`parkingLot: {alert: {messages: 1}}`, ""},
		"an alert at more messages than 32 bits hold": {`parkingLot: {alert: {messages: 5000000000}}`, ""},
		"an alert at no message":                      {`parkingLot: {alert: {messages: 0}}`, "spec.parkingLot.alert.messages: Invalid value: 0"},
		"a newline in the queue":                      {`queue: "new\nline"`, "queue must have no control characters"},
		"a dot as queue":                              {`queue: "."`, "queue must have no control characters"},
		"two dots as queue":                           {`queue: ".."`, "queue must have no control characters"},
		"dots, spaces and slashes in a queue":         {`queue: "a.b c/d%2F#é"`, ""},
		"a tab in the name of the parking lot":        {`parkingLot: {queueName: "a\tb"}`, "parkingLot.queueName must have no control characters"},
		"a dot as vhost":                              {`vhost: "."`, "vhost must have no control characters"},
		"a slash as vhost":                            {`vhost: "/"`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { createPolicy(t, tt) })
	}
}

func TestRetryPolicyDelay(t *testing.T) {
	// Each delay with whether it is accepted. What is accepted must also be
	// what a metav1.Duration decodes: createPolicy sees to that.
	tests := map[string]bool{
		"100ms": true, "500ms": true, "1s": true, "10s": true, "1m30s": true, "2h": true, "24h0m0s": true,
		"168h": true, "604800s": true, "604800000ms": true, "10080m": true, "167h59m59s999ms": true,
		// As Go writes 1500ms and 60500ms.
		"1.5s": true, "1m0.5s": true, "0.1s": true, "1.125s": true,

		"99ms": false, "0s": false, "0.099s": false, "168h1ms": false, "169h": false, "604801s": false, "8d": false,
		"1d": false, "1w": false, "10": false, "10 s": false, "1h 30m": false, "2 hours": false, "10S": false,
		"-1s": false, "+1s": false, ".5s": false, "1.s": false, "1.5h": false, "1,5s": false,
		"100000us": false, "1000000000ns": false, "1.0005s": false, "PT10S": false,
		"10s\n": false, " 10s": false, "99999999999999h": false, "9999999999999ms": false,
		"1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s": true, "1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s1s": false,
	}
	for delay, accepted := range tests {
		t.Run(delay, func(t *testing.T) {
			tt := specCase{changes: `backoff: {tiers: [{delay: "` + strings.ReplaceAll(delay, "\n", `\n`) + `"}]}`}

			switch {
			case accepted:
			case len(delay) > 32:
				tt.refused = "spec.backoff.tiers[0].delay: Too long"
			default:
				tt.refused = badDelay
			}

			createPolicy(t, tt)
		})
	}

	t.Run("a number is refused, since it has no unit", func(t *testing.T) {
		createPolicy(t, specCase{`backoff: {tiers: [{delay: 10}]}`, `spec.backoff.tiers[0].delay in body must be of type string`})
	})
	t.Run("an empty string is refused", func(t *testing.T) {
		createPolicy(t, specCase{`backoff: {tiers: [{delay: ""}]}`, badDelay})
	})
	t.Run("the second delay is checked too", func(t *testing.T) {
		createPolicy(t, specCase{`backoff: {tiers: [{delay: 1s}, {delay: 1d}]}`, "spec.backoff.tiers[1].delay: Invalid value"})
	})
}

// createPolicy has the API server check the policy, without keeping it.
func createPolicy(t *testing.T, tt specCase) {
	t.Helper()
	g := NewWithT(t)

	policy := object(t, minimalPolicy, tt.changes)
	err := server.Create(t.Context(), policy, client.DryRunAll)

	if tt.refused != "" {
		g.Expect(err).To(beRefusedWith(tt.refused))

		return
	}

	g.Expect(err).NotTo(HaveOccurred())

	// What the server lets in must decode, or one bad object would keep a typed
	// client from reading any.
	typed := &v1alpha1.RetryPolicy{}
	g.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(policy.Object, typed)).To(Succeed())
}

func TestRetryPolicyUpdate(t *testing.T) {
	const (
		queueStays  = "queue cannot be changed: create another RetryPolicy for another queue"
		brokerStays = "brokerRef cannot be changed, since what was made on that broker would be left behind: create another RetryPolicy"
		vhostStays  = "vhost cannot be changed, set or unset later: create another RetryPolicy"
	)

	tests := map[string]struct {
		before string
		specCase
	}{
		"the queue can't be changed":                  {``, specCase{`queue: invoices`, queueStays}},
		"the brokerRef can't be changed":              {``, specCase{`brokerRef: {name: other}`, brokerStays}},
		"the vhost can't be changed":                  {`vhost: shop`, specCase{`vhost: shop2`, vhostStays}},
		"the vhost can't be set later":                {``, specCase{`vhost: shop`, vhostStays}},
		"the vhost can't be unset later":              {`vhost: shop`, specCase{`vhost: null`, vhostStays}},
		"the vhost may stay":                          {`vhost: shop`, specCase{`maxAttempts: 5`, ""}},
		"the strategy that is the default can be set": {``, specCase{`strategy: Ladder`, ""}},
		"the strategy that is the default can be unset": {
			`strategy: Ladder`, specCase{`strategy: null`, ""},
		},
		"attempts, delays and the rest can be changed": {``, specCase{`{
			maxAttempts: 6, backoff: {tiers: [{delay: 5s}]}, queueType: classic,
			deletionPolicy: Delete, parkingLot: {queueName: orders.failed, alert: {messages: 5}}}`, ""}},
		"fewer attempts than tiers":       {``, specCase{`maxAttempts: 2`, "more tiers than retries"}},
		"the backoff can go with retries": {``, specCase{`{maxAttempts: 1, backoff: null}`, ""}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { updatePolicy(t, tt.before, tt.specCase) })
	}
}

// updatePolicy creates the policy that before says, and has the API server check the change.
func updatePolicy(t *testing.T, before string, tt specCase) {
	t.Helper()
	checkUpdate(t, minimalPolicy, before, tt)
}

// checkUpdate creates an object and has the API server check the change of it.
func checkUpdate(t *testing.T, minimal, before string, tt specCase) {
	t.Helper()
	g := NewWithT(t)

	o := object(t, minimal, before)
	o.SetName("")
	o.SetGenerateName("update-")
	g.Expect(server.Create(t.Context(), o)).To(Succeed())

	spec, _ := o.Object["spec"].(map[string]any)
	o.Object["spec"] = merge(spec, decode(t, tt.changes))
	err := server.Update(t.Context(), o, client.DryRunAll)

	if tt.refused != "" {
		g.Expect(err).To(beRefusedWith(tt.refused))
	} else {
		g.Expect(err).NotTo(HaveOccurred())
	}
}
