/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package topology

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// maxName is RabbitMQ's limit for the name of a queue or an exchange, in bytes.
const maxName = 255

// MaxAttempts is the most attempts that a policy can ask for, so MaxAttempts-1 is the
// highest number that a tier or a return exchange can carry.
const MaxAttempts = 32

// Names of what the operator makes for one target queue. They follow from the target
// alone, so two policies on one queue meet at the same names, where the owner argument
// tells them apart.

// TierQueue is the name of the queue in which a message waits after the given failed
// attempt. The delay and the queue type are immutable arguments, so they are part of the
// name: another delay is another queue.
func TierQueue(target string, attempt int, delay time.Duration, queueType string) string {
	name := ".retry." + strconv.Itoa(attempt) + "." + DelayText(delay)
	if queueType != Quorum {
		name += "." + queueType
	}
	return derived(target, name)
}

// ReturnExchange is the name of the exchange through which every tier of an attempt
// returns to the target, whatever its delay. It is what tells the dead-letter exchange
// how many attempts a message has had.
func ReturnExchange(target string, attempt int) string {
	return derived(target, ".retry."+strconv.Itoa(attempt)+".return")
}

// ParkExchange is the name of the exchange that leads to the parking lot whatever comes.
func ParkExchange(target string) string { return derived(target, ".retry.park") }

// DefaultParkingLot is the name of the parking lot of a policy that names none.
func DefaultParkingLot(target string) string { return derived(target, ".parked") }

func deadLetterExchange(target, hash string) string { return derived(target, ".retry.dlx."+hash) }

func firstFailureExchange(target, hash string) string {
	return derived(target, ".retry.dlx."+hash+".first")
}

// PolicyPrefix begins the name of every RabbitMQ policy that the operator makes.
const PolicyPrefix = "retry-operator."

// policyName has one reading: a namespace holds no dot.
func policyName(namespace, name string) string { return derived(PolicyPrefix+namespace+"."+name, "") }

// derived appends a suffix to the target's name. Where the two are too long for
// RabbitMQ the target is cut and a hash of the whole keeps the name unique.
func derived(target, suffix string) string {
	if len(target)+len(suffix) <= maxName {
		return target + suffix
	}
	hash := "~" + shortHash(target)
	head := target[:maxName-len(suffix)-len(hash)]
	for !utf8.ValidString(head) && utf8.ValidString(target) {
		head = head[:len(head)-1]
	}
	return head + hash + suffix
}

func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:4])
}

// DelayText writes a delay as a user would: 500ms, 10s, 1m30s, 2h.
func DelayText(d time.Duration) string {
	s := d.String()
	s, _ = strings.CutSuffix(s, "m0s")
	if s != d.String() {
		s += "m"
	}
	if h, ok := strings.CutSuffix(s, "h0m"); ok {
		s = h + "h"
	}
	if d < time.Minute && d%time.Second != 0 {
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	}
	return s
}

// ExactPattern returns a pattern that matches one queue name and no other. It ends in \z,
// since $ would also match before a newline at the end of a name.
func ExactPattern(name string) string {
	return "^" + literally(name) + `\z`
}

// matchesExactly holds a name against a pattern of the form that ExactPattern makes, without
// a regexp; exact is false when the pattern is of another form.
func matchesExactly(pattern, name string) (match, exact bool) {
	body, ok := strings.CutPrefix(pattern, "^")
	if !ok {
		return false, false
	}
	if body, ok = strings.CutSuffix(body, `\z`); !ok {
		return false, false
	}
	match = true
	for i := 0; i < len(body); i++ {
		if special := isSpecial(body[i]); special && (body[i] != '\\' || i+1 == len(body) || !isSpecial(body[i+1])) {
			return false, false
		} else if special {
			i++
		}
		if match = match && name != "" && name[0] == body[i]; match {
			name = name[1:]
		}
	}
	return match && name == "", true
}

// isSpecial reports whether a byte has a meaning in a pattern.
func isSpecial(b byte) bool { return strings.IndexByte(`\.+*?()|[]{}^$#-/`, b) >= 0 }

// literally escapes what has a meaning in a pattern.
func literally(s string) string {
	var sb strings.Builder
	for i := range len(s) {
		if isSpecial(s[i]) {
			sb.WriteByte('\\')
		}
		sb.WriteByte(s[i])
	}
	return sb.String()
}

func text(v any) string { return fmt.Sprintf("%T:%v", v, v) }
