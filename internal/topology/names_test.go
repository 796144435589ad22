/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package topology

import (
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// metacharacters are all bytes that PCRE may give a meaning.
const metacharacters = `\.+*?()|[]{}^$#-/&~!%,:;=<>@_"'` + "` \t"

func TestExactlyMatchesOneNameAndNoOther(t *testing.T) {
	names := []string{
		"a.b", "axb", "a+b", "aab", "orders", "orders2", "xorders", "orders.retry.1", "orders\n", "\norders", "Orders", "",
		`\Qorders\E`, `orders\`, `\d`, "5", "^orders$", "orders|billing", "billing", "(orders)", "[o]rders", "o{1}rders", "o*rders",
		"заказы", "заказ", "注文", "注", "ördérs", "orders😀", "orders😁", "o\u0301rders", "órders",
		metacharacters, "x" + metacharacters, metacharacters + "x",
	}
	for i := range len(metacharacters) {
		names = append(names, "a"+metacharacters[i:i+1]+"b", metacharacters[i:i+1])
	}
	for _, own := range names {
		p := Policy{Pattern: ExactPattern(own)}
		for _, other := range names {
			if got, want := p.MatchesName(other), own == other; got != want {
				t.Errorf("pattern %q of %q matches %q: %v", p.Pattern, own, other, got)
			}
		}
	}
}

func TestExactlyMatchesOneNameAndNoOtherWhateverTheNames(t *testing.T) {
	name := rapid.OneOf(rapid.StringN(0, 255, 255), rapid.StringOfN(rapid.RuneFrom([]rune(metacharacters+"ab\n")), 0, 8, -1))
	rapid.Check(t, func(t *rapid.T) {
		own, other := name.Draw(t, "own"), name.Draw(t, "other")
		p := Policy{Pattern: ExactPattern(own)}
		if !p.MatchesName(own) {
			t.Fatalf("%q does not match its own name %q", p.Pattern, own)
		}
		for _, s := range []string{other, own + other, other + own, own + "\n", strings.ToUpper(own)} {
			if p.MatchesName(s) != (s == own) {
				t.Fatalf("%q of %q matches %q", p.Pattern, own, s)
			}
		}
		if len(p.Pattern) > 1024 {
			t.Fatalf("the pattern has %d bytes, and late brokers take 1024", len(p.Pattern))
		}
	})
}

func TestPatternsOfOthersAreReadAsPCRE(t *testing.T) {
	for name, tc := range map[string]struct {
		pattern string
		matches bool
	}{
		"everything":                            {".*", true},
		"an empty pattern is everything":        {"", true},
		"patterns are not anchored":             {"rder", true},
		"anchored":                              {"^orders$", true},
		"anchored to another":                   {"^order$", false},
		"a negative look-ahead":                 {`^(?!amq\.).*`, true},
		"a quoted name":                         {`^\Qorders.v1\E$`, false},
		"the same name quoted":                  {`^\Qorders\E$`, true},
		"a quote that is not closed":            {`^\Qorders`, true},
		"an escaped backslash opens no quote":   {`^\\Qorders\\E$`, false},
		"a named class":                         {"^[[:alpha:]]+$", true},
		"a negated named class":                 {"^[^[:digit:]]+$", true},
		"a class of digits":                     {"^[[:digit:]]+$", false},
		"a name of a class inside a quote":      {`^\Q[[:alpha:]]\E$`, false},
		"a pattern that can't be read":          {"^o++rders", false},
		"a pattern that is no pattern":          {"(", false},
		"a pattern that takes for ever to fail": {"^(([a-z])+.)+[A-Z]([a-z])+$", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Policy{Pattern: tc.pattern}).MatchesName("orders"); got != tc.matches {
				t.Errorf("%q matches: %v", tc.pattern, got)
			}
		})
	}
}

// names are all the names that one target can get, by what they are for.
func names(target string, delays []time.Duration) map[string]string {
	all := map[string]string{
		"park":        ParkExchange(target),
		"parking lot": DefaultParkingLot(target),
		"dlx":         deadLetterExchange(target, "0123abcd"),
		"first":       firstFailureExchange(target, "0123abcd"),
	}
	for a := 1; a < MaxAttempts; a++ {
		all["return "+strconv.Itoa(a)] = ReturnExchange(target, a)
		for _, d := range delays {
			for _, kind := range []string{Quorum, Classic} {
				all["tier "+strconv.Itoa(a)+kind+d.String()] = TierQueue(target, a, d, kind)
			}
		}
	}
	return all
}

var targets = rapid.OneOf(
	rapid.StringN(1, 255, 255),
	rapid.StringMatching(`[a-c]{1,3}(\.retry|\.parked|\.1|\.return|\.park|\.10s|\.classic|\.dlx|\.first){0,6}`),
	rapid.StringMatching(`x{225,250}[ab]{0,5}`),
)

func TestNamesFitAndMeetNoOther(t *testing.T) {
	delays := []time.Duration{100 * time.Millisecond, 10 * time.Second, 10 * time.Minute, 168 * time.Hour, 167*time.Hour + 59*time.Minute + 59*time.Second + 999*time.Millisecond}
	rapid.Check(t, func(t *rapid.T) {
		one, other := targets.Draw(t, "one"), targets.Draw(t, "other")
		seen := map[string]string{one: "the target " + one, other: "the target " + other}
		for _, target := range []string{one, other} {
			for role, name := range names(target, delays) {
				if len(name) > 255 || name == "" {
					t.Fatalf("%s of %q has %d bytes", role, target, len(name))
				}
				if utf8.ValidString(target) && !utf8.ValidString(name) {
					t.Fatalf("%s of %q is cut inside a character: %q", role, target, name)
				}
				role += " of " + target
				if was, ok := seen[name]; ok && was != role && one != other {
					// A target may have the name of what another one makes: the owner tells them apart.
					if !strings.HasPrefix(was, "the target ") {
						t.Fatalf("%q is both %s and %s", name, was, role)
					}
				}
				seen[name] = role
			}
		}
	})
}

func TestShortNamesAreReadable(t *testing.T) {
	for name, tc := range map[string]struct{ got, want string }{
		"a tier":                   {TierQueue("orders", 1, 10*time.Second, Quorum), "orders.retry.1.10s"},
		"a classic tier":           {TierQueue("orders", 2, time.Minute, Classic), "orders.retry.2.1m.classic"},
		"a return exchange":        {ReturnExchange("orders", 3), "orders.retry.3.return"},
		"the parking lot":          {DefaultParkingLot("orders"), "orders.parked"},
		"the exchange to it":       {ParkExchange("orders"), "orders.retry.park"},
		"the policy":               {policyName("shop", "orders"), "retry-operator.shop.orders"},
		"a policy with dots":       {policyName("shop", "orders.v1"), "retry-operator.shop.orders.v1"},
		"a name that just fits":    {DefaultParkingLot(strings.Repeat("x", 248)), strings.Repeat("x", 248) + ".parked"},
		"a name that does not fit": {DefaultParkingLot(strings.Repeat("x", 249)), strings.Repeat("x", 239) + "~" + shortHash(strings.Repeat("x", 249)) + ".parked"},
		"a cut before a character": {DefaultParkingLot("x" + strings.Repeat("ж", 127)), "x" + strings.Repeat("ж", 119) + "~" + shortHash("x"+strings.Repeat("ж", 127)) + ".parked"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("got %q, want %q", tc.got, tc.want)
			}
		})
	}
}

func TestPolicyNamesFitAndMeetNoOther(t *testing.T) {
	namespace := rapid.StringMatching(`[a-z]([a-z0-9-]{0,61}[a-z0-9])?`)
	policy := rapid.OneOf(rapid.StringMatching(`[a-z]([a-z0-9.-]{0,10}[a-z0-9])?`), rapid.StringMatching(`[a-z]{200,253}`))
	rapid.Check(t, func(t *rapid.T) {
		ns1, n1 := namespace.Draw(t, "namespace"), policy.Draw(t, "name")
		ns2, n2 := namespace.Draw(t, "other namespace"), policy.Draw(t, "other name")
		one, other := policyName(ns1, n1), policyName(ns2, n2)
		if len(one) > 255 || !strings.HasPrefix(one, PolicyPrefix) {
			t.Fatalf("bad name %q", one)
		}
		if same := ns1 == ns2 && n1 == n2; (one == other) != same {
			t.Fatalf("%s/%s and %s/%s get %q and %q", ns1, n1, ns2, n2, one, other)
		}
	})
	if a, b := policyName("a-b", "c"), policyName("a", "b-c"); a == b {
		t.Errorf("both get %q", a)
	}
}

func TestDelayText(t *testing.T) {
	for text, d := range map[string]time.Duration{
		"100ms": 100 * time.Millisecond, "1500ms": 1500 * time.Millisecond, "1s": time.Second, "59s": 59 * time.Second,
		"1m": time.Minute, "1m30s": 90 * time.Second, "10m": 10 * time.Minute, "1m0.5s": time.Minute + 500*time.Millisecond,
		"1h": time.Hour, "2h": 2 * time.Hour, "1h30m": 90 * time.Minute, "1h0m30s": time.Hour + 30*time.Second, "10h": 10 * time.Hour,
		"100h": 100 * time.Hour, "168h": 168 * time.Hour, "20h10m": 20*time.Hour + 10*time.Minute,
	} {
		if got := DelayText(d); got != text {
			t.Errorf("%s is written %q, want %q", d, got, text)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(1, 7*24*3600*1000).Draw(t, "ms")) * time.Millisecond
		if back, err := time.ParseDuration(DelayText(d)); err != nil || back != d {
			t.Fatalf("%s is written %q, which reads as %s", d, DelayText(d), back)
		}
	})
}

func TestMatchesExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name, other := rapid.String().Draw(t, "name"), rapid.String().Draw(t, "other")
		if match, exact := matchesExactly(ExactPattern(name), name); !match || !exact {
			t.Fatalf("its own name: %v, %v", match, exact)
		}
		if match, exact := matchesExactly(ExactPattern(name), other); match != (name == other) || !exact {
			t.Fatalf("another name: %v, %v", match, exact)
		}
	})
	for _, pattern := range []string{".*", "^orders", `orders\z`, `^orders.*\z`, `^a\dz\z`, `^[ab]\z`, `^a\\\z`, ""} {
		if _, exact := matchesExactly(pattern, "orders"); exact && pattern != `^a\\\z` {
			t.Errorf("%q is taken for an exact pattern", pattern)
		}
	}
}
