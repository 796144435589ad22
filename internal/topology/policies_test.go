/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package topology

import (
	"fmt"
	"testing"
)

func TestAPolicyApplies(t *testing.T) {
	for name, tc := range map[string]struct {
		applyTo    string
		definition Args
		classic    bool
		quorum     bool
		stream     bool
	}{
		"to all":                 {applyTo: "all", classic: true, quorum: true, stream: true},
		"to queues":              {applyTo: "queues", classic: true, quorum: true, stream: true},
		"to exchanges":           {applyTo: "exchanges"},
		"to classic queues":      {applyTo: "classic_queues", classic: true},
		"to quorum queues":       {applyTo: "quorum_queues", quorum: true},
		"to streams":             {applyTo: "streams", stream: true},
		"to what is not known":   {applyTo: "something_new"},
		"a delivery limit":       {"queues", Args{"max-length": int64(1), "delivery-limit": int64(1)}, false, true, false},
		"a queue mode":           {"queues", Args{"queue-mode": "lazy"}, true, false, false},
		"a queue version":        {"queues", Args{"queue-version": int64(2)}, true, true, true},
		"delayed retry":          {"queues", Args{"delayed-retry-min": int64(2)}, true, true, true},
		"a dead-letter exchange": {"queues", Args{"dead-letter-exchange": "x"}, true, true, false},
		"a dead-letter strategy": {"queues", Args{"dead-letter-strategy": "at-least-once"}, false, true, false},
		"a maximal age":          {"queues", Args{"max-age": "1D"}, false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := Policy{Pattern: "^q$", ApplyTo: tc.applyTo, Definition: tc.definition}
			for queueType, want := range map[string]bool{Classic: tc.classic, Quorum: tc.quorum, Stream: tc.stream} {
				if got := p.Matches(Queue{Name: "q", Type: queueType}); got != want {
					t.Errorf("to a %s queue: %v", queueType, got)
				}
				if p.Matches(Queue{Name: "other", Type: queueType}) {
					t.Errorf("it applies to a queue of another name")
				}
			}
		})
	}
}

func TestOutranked(t *testing.T) {
	for name, tc := range map[string]struct {
		policies []Policy
		want     string
	}{
		"none":                              {nil, ""},
		"the highest priority":              {[]Policy{{Name: "a", Priority: 1}, {Name: "b", Priority: 2}, {Name: "c", Priority: -9}}, "b"},
		"a negative priority is a priority": {[]Policy{{Name: "a", Priority: -5}}, "a"},
		"of equals the first by name":       {[]Policy{{Name: "b", Priority: 2}, {Name: "a", Priority: 2}}, "a"},
		"another one of our kind counts":    {[]Policy{{Name: "retry-operator.defaults", Priority: 200}, {Name: "a", Priority: 2}}, "retry-operator.defaults"},
		"ours does not count":               {[]Policy{{Name: "retry-operator.shop.orders", Priority: 200}, {Name: "a", Priority: 2}}, "a"},
		"one with a key that disables it":   {[]Policy{{Name: "a", Priority: 2}, {Name: "b", Priority: 9, Definition: Args{"delivery-limit": int64(1)}}}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			topo := New()
			for _, p := range tc.policies {
				p.Pattern, p.ApplyTo = "orders", "queues"
				topo.AddPolicy(p)
			}
			if got, ok := topo.Outranked(Queue{Name: "orders", Type: Classic}, "retry-operator.shop.orders"); got.Name != tc.want || ok != (tc.want != "") {
				t.Errorf("got %q", got.Name)
			}
		})
	}
}

// TestSettingsOf holds the table "Precedence argument vs policy" of rabbitmq-facts.md.
func TestSettingsOf(t *testing.T) {
	for name, tc := range map[string]struct {
		queueType                 string
		arguments, user, operator Args
		want                      string
	}{
		"nothing is set": {Classic, nil, nil, nil, "overflow=drop-head"},
		"a dead-letter exchange by argument wins": {
			Classic, Args{"x-dead-letter-exchange": "arg"}, Args{"dead-letter-exchange": "policy", "dead-letter-routing-key": "k"}, nil,
			"dlx=arg key=k overflow=drop-head",
		},
		"the default exchange is an exchange": {Classic, Args{"x-dead-letter-exchange": ""}, nil, nil, "dlx= overflow=drop-head"},
		"the smallest limit wins": {
			Classic, Args{"x-message-ttl": int64(5), "x-max-length": int64(9)}, Args{"message-ttl": int64(7), "max-length": int64(8), "expires": int64(1)},
			Args{"message-ttl": int64(6), "max-length": int64(3), "max-length-bytes": int64(4)},
			"overflow=drop-head ttl=5 max=3 bytes=4 expires=1",
		},
		"overflow of a classic queue: the argument wins": {
			Classic, Args{"x-overflow": "reject-publish"}, Args{"overflow": "drop-head"}, nil, "overflow=reject-publish",
		},
		"overflow of a quorum queue: the policy wins": {
			Quorum, Args{"x-overflow": "reject-publish"}, Args{"overflow": "drop-head"}, nil, "overflow=drop-head",
		},
		"overflow by operator policy wins over all": {
			Quorum, Args{"x-overflow": "reject-publish"}, Args{"overflow": "reject-publish"}, Args{"overflow": "drop-head"}, "overflow=drop-head",
		},
		"at-least-once needs all three": {
			Quorum, nil, Args{"dead-letter-exchange": "x", "dead-letter-strategy": "at-least-once", "overflow": "reject-publish"}, nil,
			"dlx=x at-least-once overflow=reject-publish",
		},
		"at-least-once with drop-head is at-most-once": {
			Quorum, nil, Args{"dead-letter-exchange": "x", "dead-letter-strategy": "at-least-once"}, nil, "dlx=x overflow=drop-head",
		},
		"at-least-once without an exchange is nothing": {
			Quorum, nil, Args{"dead-letter-strategy": "at-least-once", "overflow": "reject-publish"}, nil, "overflow=reject-publish",
		},
		"the strategy by argument wins": {
			Quorum, Args{"x-dead-letter-strategy": "at-most-once"},
			Args{"dead-letter-exchange": "x", "dead-letter-strategy": "at-least-once", "overflow": "reject-publish"}, nil, "dlx=x overflow=reject-publish",
		},
		"the smallest delivery limit": {
			Quorum, Args{"x-delivery-limit": int64(9)}, Args{"delivery-limit": int64(5)}, Args{"delivery-limit": int64(7)}, "overflow=drop-head limit=5",
		},
		"the largest where one is none": {
			Quorum, Args{"x-delivery-limit": int64(-1)}, Args{"delivery-limit": int64(5)}, nil, "overflow=drop-head limit=5",
		},
		"a policy with a key for another type has no effect": {
			Classic, nil, Args{"dead-letter-exchange": "x", "delivery-limit": int64(5)}, nil, "overflow=drop-head",
		},
	} {
		t.Run(name, func(t *testing.T) {
			topo := New()
			if tc.user != nil {
				topo.AddPolicy(Policy{Name: "user", Pattern: "q", ApplyTo: "all", Definition: tc.user})
			}
			if tc.operator != nil {
				topo.OperatorPolicies["op"] = Policy{Name: "op", Pattern: "q", ApplyTo: "all", Definition: tc.operator}
			}
			if got := settingsText(topo.SettingsOf(Queue{Name: "q", Type: tc.queueType, Arguments: tc.arguments})); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func settingsText(s Settings) string {
	out := ""
	if s.DeadLetterExchange != nil {
		out += "dlx=" + *s.DeadLetterExchange + " "
	}
	if s.DeadLetterRoutingKey != nil {
		out += "key=" + *s.DeadLetterRoutingKey + " "
	}
	if s.AtLeastOnce {
		out += "at-least-once "
	}
	out += "overflow=" + s.Overflow
	for _, n := range []struct {
		name  string
		value *int64
	}{{"ttl", s.MessageTTL}, {"max", s.MaxLength}, {"bytes", s.MaxLengthBytes}, {"expires", s.Expires}, {"limit", s.DeliveryLimit}} {
		if n.value != nil {
			out += fmt.Sprintf(" %s=%d", n.name, *n.value)
		}
	}
	return out
}

func TestTheBrokersWordCountsWhereTheQueueWasObserved(t *testing.T) {
	topo := New()
	topo.AddPolicy(Policy{Name: "strong", Pattern: "q", ApplyTo: "all", Priority: 9, Definition: Args{"max-length": int64(1)}})
	topo.AddPolicy(Policy{Name: "weak", Pattern: "q", ApplyTo: "all", Definition: Args{"max-length": int64(2)}})
	for said, want := range map[string]string{"weak": "overflow=drop-head max=2", "": "overflow=drop-head", "gone": "overflow=drop-head"} {
		q := Queue{Name: "q", Type: Classic, State: &QueueState{Policy: said}}
		if got := settingsText(topo.SettingsOf(q)); got != want {
			t.Errorf("the broker says %q: got %s, want %s", said, got, want)
		}
	}
}
