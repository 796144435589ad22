/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package topology

import (
	"slices"
	"strings"
	"time"

	"github.com/dlclark/regexp2"
)

// Keys of policies, and the arguments of a queue that stand for the same.
const (
	KeyDeadLetterExchange   = "dead-letter-exchange"
	KeyDeadLetterRoutingKey = "dead-letter-routing-key"
	KeyDeadLetterStrategy   = "dead-letter-strategy"
	KeyOverflow             = "overflow"
	KeyDeliveryLimit        = "delivery-limit"
	KeyMaxLength            = "max-length"
	KeyMaxLengthBytes       = "max-length-bytes"
	KeyMessageTTL           = "message-ttl"
	KeyExpires              = "expires"
	KeyAlternateExchange    = "alternate-exchange"

	AtLeastOnce   = "at-least-once"
	AtMostOnce    = "at-most-once"
	DropHead      = "drop-head"
	RejectPublish = "reject-publish"
)

// unsupported holds the policy keys that make RabbitMQ leave out a whole policy, without
// a word, for a queue of the type (rabbit_queue_type:is_policy_applicable): what the type
// lists under unsupported_policies in 4.0.5 and 4.3.6, and no key beyond. With a key too
// many here a policy would count as not applying, and its other keys would not be merged.
var unsupported = map[string][]string{
	Classic: {
		KeyDeadLetterStrategy, KeyDeliveryLimit, "max-in-memory-length", "max-in-memory-bytes",
		"target-group-size", "initial-cluster-size", "max-age", "stream-max-segment-size-bytes",
	},
	Quorum: {
		"ha-mode", "ha-params", "ha-sync-mode", "ha-promote-on-shutdown", "ha-promote-on-failure",
		"queue-mode", "max-priority", "queue-master-locator",
		"max-age", "stream-max-segment-size-bytes", "initial-cluster-size",
	},
	Stream: {
		KeyExpires, KeyMessageTTL, KeyDeadLetterExchange, KeyDeadLetterRoutingKey, KeyDeadLetterStrategy,
		KeyMaxLength, KeyOverflow, KeyDeliveryLimit, "max-in-memory-length", "max-in-memory-bytes",
		"ha-mode", "ha-params", "ha-sync-mode", "ha-promote-on-shutdown", "ha-promote-on-failure",
		"queue-mode", "max-priority", "queue-master-locator", "target-group-size",
	},
}

// patternTimeout bounds the match of a pattern that somebody else wrote.
const patternTimeout = 50 * time.Millisecond

// Matches reports whether the policy applies to the queue: by name, by kind, and with
// all its keys known to the queue's type. A pattern that can't be read does not match.
func (p Policy) Matches(q Queue) bool {
	return p.appliesTo(q.Type) && p.supportedBy(q.Type) && p.MatchesName(q.Name)
}

// MatchesName reports whether the policy's pattern finds the name. RabbitMQ's patterns
// are PCRE and unanchored.
func (p Policy) MatchesName(name string) bool {
	if match, exact := matchesExactly(p.Pattern, name); exact {
		return match // most policies of a vhost are of this kind, and no regexp is needed
	}
	re, err := regexp2.Compile(withoutPCRE(p.Pattern), regexp2.None)
	if err != nil {
		return false
	}
	re.MatchTimeout = patternTimeout
	ok, err := re.MatchString(name)
	return err == nil && ok
}

// posixClasses are the sets of characters that PCRE has names for and regexp2 has not.
var posixClasses = strings.NewReplacer(
	"[:alnum:]", "a-zA-Z0-9", "[:alpha:]", "a-zA-Z", "[:digit:]", "0-9", "[:xdigit:]", "0-9a-fA-F",
	"[:lower:]", "a-z", "[:upper:]", "A-Z", "[:space:]", `\s`, "[:word:]", `\w`,
)

// withoutPCRE rewrites what patterns of policies commonly use and regexp2 does not read:
// \Q…\E and the named classes of POSIX.
func withoutPCRE(pattern string) string {
	var out, plain strings.Builder
	flush := func() {
		out.WriteString(posixClasses.Replace(plain.String()))
		plain.Reset()
	}
	for len(pattern) > 0 {
		switch {
		case strings.HasPrefix(pattern, `\Q`):
			quoted, rest, _ := strings.Cut(pattern[2:], `\E`)
			flush()
			out.WriteString(literally(quoted))
			pattern = rest
		case strings.HasPrefix(pattern, `\E`):
			pattern = pattern[2:]
		case pattern[0] == '\\' && len(pattern) > 1:
			plain.WriteString(pattern[:2])
			pattern = pattern[2:]
		default:
			plain.WriteByte(pattern[0])
			pattern = pattern[1:]
		}
	}
	flush()
	return out.String()
}

func (p Policy) appliesTo(queueType string) bool {
	switch p.ApplyTo {
	case "all", "queues":
		return true
	case "classic_queues":
		return queueType == Classic
	case "quorum_queues":
		return queueType == Quorum
	case "streams":
		return queueType == Stream
	}
	return false
}

func (p Policy) supportedBy(queueType string) bool {
	return !slices.ContainsFunc(unsupported[queueType], p.Definition.Has)
}

// Outranked returns the user policy with the highest priority that applies to the queue,
// leaving out the one of the given name. It is the one that would be in effect without it.
func (t Topology) Outranked(q Queue, own string) (Policy, bool) {
	return strongest(t.Policies, func(p Policy) bool { return p.Name != own && p.Matches(q) })
}

// InEffect returns the user policy that decides over a queue: the one that the broker
// reports where the queue was observed, else the one with the highest priority.
func (t Topology) InEffect(q Queue) (Policy, bool) {
	if q.State != nil {
		p, ok := t.Policies[q.State.Policy]
		return p, ok
	}
	return strongest(t.Policies, func(p Policy) bool { return p.Matches(q) })
}

func (t Topology) operatorPolicy(q Queue) (Policy, bool) {
	if q.State != nil {
		p, ok := t.OperatorPolicies[q.State.OperatorPolicy]
		return p, ok
	}
	return strongest(t.OperatorPolicies, func(p Policy) bool { return p.Matches(q) })
}

// AlternateOf returns the exchange that takes what no binding of e does: the one of its
// argument, else the one of the policy with the highest priority that applies to e.
func (t Topology) AlternateOf(e Exchange) (string, bool) {
	if name, ok := e.Arguments[KeyAlternateExchange].(string); ok {
		return name, true
	}
	p, _ := strongest(t.Policies, func(p Policy) bool {
		return (p.ApplyTo == "all" || p.ApplyTo == "exchanges") && p.MatchesName(e.Name)
	})
	name, ok := p.Definition[KeyAlternateExchange].(string)
	return name, ok
}

// strongest returns the matching policy with the highest priority; of equals, whose
// order RabbitMQ leaves open, the first by name.
func strongest(policies map[string]Policy, match func(Policy) bool) (Policy, bool) {
	var best Policy
	found := false
	for _, p := range policies {
		stronger := !found || p.Priority > best.Priority || p.Priority == best.Priority && p.Name < best.Name
		if stronger && match(p) {
			best, found = p, true
		}
	}
	return best, found
}

// Settings are what decides over the life of messages in a queue once arguments, policy
// and operator policy are combined by RabbitMQ's rules.
type Settings struct {
	// DeadLetterExchange is nil when dead letters are dropped; "" is the default exchange.
	DeadLetterExchange   *string
	DeadLetterRoutingKey *string
	// AtLeastOnce is set when dead letters stay in the queue until their target confirms.
	AtLeastOnce bool
	// Limits are nil where there is none.
	MaxLength      *int64
	MaxLengthBytes *int64
	MessageTTL     *int64
	Expires        *int64
	// DeliveryLimit is nil when it is RabbitMQ's default; negative means none.
	DeliveryLimit *int64
	Overflow      string
}

// Bounded reports whether the queue has a length limit.
func (s Settings) Bounded() bool { return s.MaxLength != nil || s.MaxLengthBytes != nil }

// SettingsOf combines arguments, user policy and operator policy of a queue.
func (t Topology) SettingsOf(q Queue) Settings {
	user, _ := t.InEffect(q)
	operator, _ := t.operatorPolicy(q)
	c := combined{arguments: q.Arguments, user: user.Definition, operator: operator.Definition}
	s := Settings{
		DeadLetterExchange:   c.argumentFirst(KeyDeadLetterExchange),
		DeadLetterRoutingKey: c.argumentFirst(KeyDeadLetterRoutingKey),
		MaxLength:            c.smallest(KeyMaxLength),
		MaxLengthBytes:       c.smallest(KeyMaxLengthBytes),
		MessageTTL:           c.smallest(KeyMessageTTL),
		Expires:              c.smallest(KeyExpires),
		Overflow:             c.overflow(q.Type),
	}
	if q.Type == Quorum {
		s.DeliveryLimit = c.deliveryLimit()
		strategy := c.argumentFirst(KeyDeadLetterStrategy)
		s.AtLeastOnce = s.DeadLetterExchange != nil && strategy != nil && *strategy == AtLeastOnce && s.Overflow == RejectPublish
	}
	return s
}

// combined is the three places a setting can come from.
type combined struct{ arguments, user, operator Args }

func (c combined) argumentFirst(key string) *string {
	for _, from := range []struct {
		args Args
		key  string
	}{{c.arguments, "x-" + key}, {c.user, key}} {
		if v, ok := from.args[from.key].(string); ok {
			return &v
		}
	}
	return nil
}

func (c combined) all(key string) []int64 {
	var out []int64
	for _, from := range []struct {
		args Args
		key  string
	}{{c.arguments, "x-" + key}, {c.user, key}, {c.operator, key}} {
		if n, ok := from.args.Int(from.key); ok {
			out = append(out, n)
		}
	}
	return out
}

func (c combined) smallest(key string) *int64 {
	found := c.all(key)
	if len(found) == 0 {
		return nil
	}
	return new(slices.Min(found))
}

// deliveryLimit is the smallest, unless one of them says that there is none.
func (c combined) deliveryLimit() *int64 {
	found := c.all(KeyDeliveryLimit)
	if len(found) == 0 {
		return nil
	}
	if slices.Min(found) < 0 {
		return new(slices.Max(found))
	}
	return new(slices.Min(found))
}

// overflow: a policy beats the argument on quorum queues, and loses to it on classic ones.
func (c combined) overflow(queueType string) string {
	order := []string{c.operator.String(KeyOverflow), c.arguments.String("x-" + KeyOverflow), c.user.String(KeyOverflow), DropHead}
	if queueType == Quorum {
		order[1], order[2] = order[2], order[1]
	}
	for _, v := range order {
		if v != "" {
			return v
		}
	}
	return DropHead
}
