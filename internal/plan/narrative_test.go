/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package plan_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/plan"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
)

var update = flag.Bool("update", false, "write the golden files of the narratives anew")

// interval is the time between two passes of a narrative: short beside plan.Settle, so
// that waits are told.
const interval = 5 * time.Second

// narrative tells the life of one policy, pass by pass.
type narrative struct {
	t       *testing.T
	broker  *broker
	request topology.Request
	text    strings.Builder
	passes  int
	last    string
}

func orders() topology.Request {
	return topology.Request{
		Owner:       topology.Owner{Installation: "cluster-1", Namespace: "shop", Name: "orders"},
		Target:      "orders",
		MaxAttempts: 4,
		Delays:      []time.Duration{10 * time.Second, time.Minute, 10 * time.Minute},
		ParkingLot:  "orders.parked",
		QueueType:   topology.Quorum,
		Retain:      true,
	}
}

func newNarrative(t *testing.T) *narrative {
	t.Helper()
	return &narrative{t: t, broker: newBroker(), request: orders()}
}

// settled starts with everything made for a target of the type.
func settled(t *testing.T, queueType string) *narrative {
	t.Helper()
	n := newNarrative(t)
	n.broker.target("orders", queueType, nil)
	if p := n.run(5); !p.Done() {
		t.Fatalf("the policy is not settled:\n%s", n.text.String())
	}
	n.text.Reset()
	n.passes = 0
	n.broker.advance(time.Minute)
	return n
}

func (n *narrative) say(format string, args ...any) {
	fmt.Fprintf(&n.text, "\n== "+format+"\n", args...)
	n.last = ""
}

// pass observes, plans and applies once, and writes it down.
func (n *narrative) pass() plan.Plan {
	n.t.Helper()
	n.passes++
	observed := n.broker.observe()
	before := render(n.broker.Topology, foreignTo(n.request))
	p := plan.Compute(topology.Desired(n.request, observed), observed)
	text := tell(p)
	if text == n.last {
		text = "  as before\n"
	} else {
		n.last = text
	}
	fmt.Fprintf(&n.text, "pass %d\n%s", n.passes, text)
	if err := n.broker.apply(n.request, p.Steps); err != nil {
		n.t.Errorf("pass %d: %v", n.passes, err)
	}
	if after := render(n.broker.Topology, foreignTo(n.request)); after != before {
		n.t.Errorf("pass %d changed what is not ours:\n%s\nbecame\n%s", n.passes, before, after)
	}
	n.broker.advance(interval)
	return p
}

// run passes until nothing is left to do or wait for.
func (n *narrative) run(atMost int) plan.Plan {
	n.t.Helper()
	var p plan.Plan
	for range atMost {
		if p = n.pass(); p.Done() {
			break
		}
	}
	return p
}

func tell(p plan.Plan) string {
	if p.Done() {
		return "  done\n"
	}
	var sb strings.Builder
	for _, c := range p.Conflicts {
		fmt.Fprintf(&sb, "  conflict %s: %s\n", c.Kind, c.Message)
	}
	for _, s := range p.Steps {
		fmt.Fprintf(&sb, "  %s\n    because %s\n", s, s.Reason)
		if s.Action == plan.PutPolicy {
			fmt.Fprintf(&sb, "    with %s, %s, priority %d, %v\n", s.Policy.Pattern, s.Policy.ApplyTo, s.Policy.Priority, s.Policy.Definition)
		}
	}
	for _, w := range p.Waits {
		fmt.Fprintf(&sb, "  wait with %s\n    because %s\n", w.Object, w.Reason)
	}
	return sb.String()
}

func (n *narrative) golden(name string) {
	n.t.Helper()
	path := filepath.Join("testdata", name+".golden")
	got := strings.TrimLeft(n.text.String(), "\n")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			n.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		n.t.Fatal(err)
	}
	if got != string(want) {
		n.t.Errorf("the narrative differs from %s (run the test with -update and read the diff):\n%s", path, got)
	}
}

func TestNarratives(t *testing.T) {
	for name, life := range map[string]func(*testing.T) *narrative{
		"create":                        lifeCreate,
		"target-appears":                lifeTargetAppears,
		"target-recreated":              lifeTargetRecreated,
		"drift":                         lifeDrift,
		"change-tiers":                  lifeChangeTiers,
		"fewer-attempts":                lifeFewerAttempts,
		"rename-parking-lot":            lifeRenameParkingLot,
		"delete-retain":                 lifeDeleteRetain,
		"delete-everything":             lifeDeleteEverything,
		"delete-classic":                lifeDeleteClassic,
		"delete-with-conflicts":         lifeDeleteWithConflicts,
		"delete-loser":                  lifeDeleteLoser,
		"conflicts":                     lifeConflicts,
		"outranked":                     lifeOutranked,
		"outranked-while-target-away":   lifeOutrankedWhileTargetAway,
		"outranked-gets-a-length-limit": lifeLengthLimit,
	} {
		t.Run(name, func(t *testing.T) {
			n := life(t)
			n.golden(name)
		})
	}
}

func lifeCreate(t *testing.T) *narrative {
	t.Helper()
	n := newNarrative(t)
	n.broker.target("orders", topology.Quorum, nil)
	n.say("A policy is created for a quorum queue: the claim alone first, then all of it, the target's policy last")
	n.run(5)
	return n
}

func lifeTargetAppears(t *testing.T) *narrative {
	t.Helper()
	n := newNarrative(t)
	n.say("The target is not there: everything but the way into it")
	n.run(5)
	n.say("A classic target appears")
	n.broker.target("orders", topology.Classic, nil)
	n.run(5)
	return n
}

func lifeTargetRecreated(t *testing.T) *narrative {
	t.Helper()
	n := settled(t, topology.Quorum)
	n.broker.messages("orders.retry.2.1m", 3)
	n.say("The target is deleted while a tier holds 3 messages: the way on to the parking lot stays")
	n.broker.RemoveQueue("orders")
	n.run(5)
	n.say("The target is back: bound again, and its policy says all that a quorum queue needs")
	n.broker.target("orders", topology.Quorum, nil)
	n.run(5)
	return n
}

func lifeDrift(t *testing.T) *narrative {
	t.Helper()
	n := settled(t, topology.Quorum)
	whole := n.broker.Clone()
	wholeText := render(whole, everything)
	one := func(what string, remove func(*broker)) {
		n.broker = &broker{whole.Clone()}
		remove(n.broker)
		n.say("Somebody deletes %s", what)
		if p := n.run(4); !p.Done() {
			t.Errorf("%s does not come back", what)
		}
		if got := render(n.broker.Topology, everything); got != wholeText {
			t.Errorf("after %s was deleted and came back:\n%s\nwant\n%s", what, got, wholeText)
		}
	}
	for _, q := range whole.OwnedQueues(n.request.Owner) {
		one("queue "+q.Name, func(b *broker) { b.RemoveQueue(q.Name) })
	}
	for _, e := range whole.OwnedExchanges(n.request.Owner) {
		one("exchange "+e.Name, func(b *broker) { b.RemoveExchange(e.Name) })
	}
	for _, x := range whole.SortedBindings() {
		one("binding "+plan.Step{Action: plan.Bind, Binding: x}.Object(), func(b *broker) { b.Unbind(x) })
	}
	for _, p := range topology.Sorted(whole.Policies) {
		one("policy "+p.Name, func(b *broker) { b.dropPolicy(p.Name) })
	}
	return n
}

func lifeChangeTiers(t *testing.T) *narrative {
	t.Helper()
	n := settled(t, topology.Quorum)
	n.broker.messages("orders.retry.2.1m", 2)
	n.say("The second delay becomes 5m while its tier holds 2 messages: one write of the policy moves the dead letters over")
	n.request.Delays[1] = 5 * time.Minute
	n.run(6)
	n.say("The broker stops saying how many messages the old tier holds")
	n.broker.messagesUnknown("orders.retry.2.1m")
	n.run(2)
	n.say("The old tier has drained")
	n.broker.messages("orders.retry.2.1m", 0)
	n.run(5)
	n.say("The delay becomes 1m again: the same names as at first")
	n.request.Delays[1] = time.Minute
	n.run(12)
	return n
}

func lifeFewerAttempts(t *testing.T) *narrative {
	t.Helper()
	n := settled(t, topology.Quorum)
	n.broker.messages("orders.retry.3.10m", 5)
	n.say("From 4 attempts to 2 while the third tier holds 5 messages: they come back through their own exchange and are parked if they fail again")
	n.request.MaxAttempts, n.request.Delays = 2, n.request.Delays[:1]
	n.run(9)
	n.say("The third tier has drained")
	n.broker.messages("orders.retry.3.10m", 0)
	n.run(9)
	n.say("No retries at all: the first failure is parked, and what came through an earlier attempt too")
	n.request.MaxAttempts, n.request.Delays = 1, nil
	n.run(12)
	wantParked(t, n, 1, 2, 3)
	return n
}

// wantParked checks that what comes back from earlier attempts is parked when it fails.
func wantParked(t *testing.T, n *narrative, attempts ...int) {
	t.Helper()
	l := topology.Desired(n.request, n.broker.observe())
	for _, a := range attempts {
		b := topology.Binding{Source: l.DeadLetterExchange, Destination: n.request.ParkingLot, Arguments: topology.Args{
			"x-match": "all-with-x", "x-last-death-reason": "rejected", "x-last-death-exchange": topology.ReturnExchange("orders", a),
		}}
		if !n.broker.Bound(b) {
			t.Errorf("a message that came through attempt %d and fails again would start at the first tier", a)
		}
	}
}

func lifeRenameParkingLot(t *testing.T) *narrative {
	t.Helper()
	n := settled(t, topology.Quorum)
	n.broker.messages("orders.parked", 7)
	n.say("The parking lot gets another name; the old one holds 7 messages and is retained")
	n.request.ParkingLot = "orders.failed"
	n.run(8)
	n.say("The policy is deleted with deletionPolicy Delete: the old parking lot stays with its messages and holds nothing up")
	n.request.Deleting, n.request.Retain = true, false
	if p := n.run(20); !p.Done() {
		t.Errorf("the deletion does not end")
	}
	if _, ok := n.broker.Queues["orders.parked"]; !ok {
		t.Errorf("the old parking lot is gone with its messages")
	}
	return n
}

func lifeDeleteRetain(t *testing.T) *narrative {
	t.Helper()
	n := settled(t, topology.Quorum)
	n.broker.messages("orders.retry.1.10s", 1)
	n.broker.pending("orders", 2)
	n.say("The policy is deleted while a tier holds a message and 2 dead letters are pending in the target")
	n.request.Deleting = true
	n.run(6)
	n.say("The tier has drained")
	n.broker.messages("orders.retry.1.10s", 0)
	n.run(6)
	n.say("The pending dead letters have arrived in the parking lot")
	n.broker.pending("orders", 0)
	n.broker.messages("orders.parked", 2)
	n.run(8)
	wantLeft(t, n, "orders", "orders.parked")
	return n
}

func wantLeft(t *testing.T, n *narrative, queues ...string) {
	t.Helper()
	if len(n.broker.Exchanges) != 0 || len(n.broker.Queues) != len(queues) {
		t.Errorf("%d exchanges and %d queues are left, want queues %v alone", len(n.broker.Exchanges), len(n.broker.Queues), queues)
	}
	for _, q := range queues {
		if _, ok := n.broker.Queues[q]; !ok {
			t.Errorf("queue %s is gone", q)
		}
	}
}

func lifeDeleteEverything(t *testing.T) *narrative {
	t.Helper()
	n := settled(t, topology.Quorum)
	n.say("The policy is deleted with deletionPolicy Delete and nothing under way")
	n.request.Deleting, n.request.Retain = true, false
	n.run(20)
	wantLeft(t, n, "orders")

	for _, known := range []bool{true, false} {
		n.broker = newBroker()
		n.request = orders()
		n.broker.target("orders", topology.Quorum, nil)
		n.run(5)
		if n.text.Reset(); known {
			n.say("The same with a message in the parking lot: it stays")
			n.broker.messages("orders.parked", 1)
		} else {
			n.say("The same with a parking lot of unknown count: it stays")
			n.broker.messagesUnknown("orders.parked")
		}
		n.request.Deleting, n.request.Retain = true, false
		n.run(20)
		wantLeft(t, n, "orders", "orders.parked")
	}
	return n
}

func lifeDeleteClassic(t *testing.T) *narrative {
	t.Helper()
	n := settled(t, topology.Classic)
	n.say("The policy of a classic target is deleted, and the target goes in the middle of it")
	n.request.Deleting = true
	n.run(2)
	n.broker.RemoveQueue("orders")
	n.run(20)
	wantLeft(t, n, "orders.parked")
	return n
}

func lifeDeleteWithConflicts(t *testing.T) *narrative {
	t.Helper()
	n := settled(t, topology.Quorum)
	n.say("Somebody deletes the parking lot and declares a queue of that name; then the policy is deleted: the foreign queue is not bound")
	n.broker.RemoveQueue("orders.parked")
	n.broker.target("orders.parked", topology.Classic, nil)
	n.request.Deleting = true
	n.run(2)
	n.say("The foreign queue is gone")
	n.broker.RemoveQueue("orders.parked")
	n.run(20)
	wantLeft(t, n, "orders", "orders.parked")
	return n
}

func lifeDeleteLoser(t *testing.T) *narrative {
	t.Helper()
	for _, loser := range []topology.Owner{
		{Installation: "cluster-1", Namespace: "shop", Name: "orders-too"},
		{Installation: "cluster-1", Namespace: "shop-orders", Name: "orders"},
		{Installation: "cluster-2", Namespace: "shop", Name: "orders"},
	} {
		n := settled(t, topology.Quorum)
		before := render(n.broker.Topology, everything)
		n.request.Owner = loser
		if p := n.pass(); len(p.Conflicts) != 1 || p.Conflicts[0].Kind != plan.TargetClaimed {
			t.Errorf("%v is not refused: %v", loser, p)
		}
		n.request.Deleting = true
		if p := n.run(3); !p.Done() {
			t.Errorf("the deletion of %v does not end", loser)
		}
		if after := render(n.broker.Topology, everything); after != before {
			t.Errorf("the deletion of %v did harm:\n%s\nbecame\n%s", loser, before, after)
		}
	}
	n := settled(t, topology.Quorum)
	n.request.Owner.Installation = "cluster-2"
	n.say("The same policy from another cluster on the same broker")
	n.pass()
	n.say("It is deleted: nothing of the first one's is touched, not even the RabbitMQ policy of the same name")
	n.request.Deleting = true
	n.pass()
	return n
}

func lifeConflicts(t *testing.T) *narrative {
	t.Helper()
	n := newNarrative(t)
	one := func(title string, queueType string, want plan.ConflictKind, prepare func(*broker)) {
		n.broker = newBroker()
		n.broker.target("orders", queueType, nil)
		prepare(n.broker)
		before := render(n.broker.Topology, everything)
		n.say("%s", title)
		p := n.pass()
		if len(p.Conflicts) == 0 || len(p.Steps) > 0 || p.Conflicts[0].Kind != want {
			t.Errorf("%s: got %v, want %s", title, p, want)
		}
		if render(n.broker.Topology, everything) != before {
			t.Errorf("%s: something was touched", title)
		}
	}
	one("A queue of the parking lot's name was not made by the operator", topology.Quorum, plan.NotOwned, func(b *broker) {
		b.target("orders.parked", topology.Quorum, topology.Args{"x-message-ttl": int64(1000)})
	})
	one("An exchange of a return exchange's name is there", topology.Quorum, plan.NotOwned, func(b *broker) {
		b.AddExchange(topology.Exchange{Name: "orders.retry.1.return", Type: "topic", Durable: true})
	})
	one("A tier belongs to another policy", topology.Quorum, plan.NotOwned, func(b *broker) {
		b.target("orders.retry.1.10s", topology.Quorum, topology.Args{topology.ArgOwner: "cluster-1/shop/other"})
	})
	one("A tier of ours has another delay", topology.Quorum, plan.QueueArgumentMismatch, func(b *broker) {
		b.target("orders.retry.1.10s", topology.Quorum, topology.Args{
			topology.ArgOwner: "cluster-1/shop/orders", topology.ArgRole: "tier", topology.ArgAttempt: int64(1),
			"x-message-ttl": int64(99), "x-dead-letter-exchange": "orders.retry.1.return",
			"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
		})
	})
	one("The target was declared with dead-letter arguments", topology.Quorum, plan.QueueArgumentMismatch, func(b *broker) {
		b.target("orders", topology.Quorum, topology.Args{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq"})
	})
	one("The target is a stream", topology.Stream, plan.UnsupportedTargetType, func(*broker) {})
	one("The target is exclusive", topology.Classic, plan.UnsupportedTargetType, func(b *broker) {
		q := b.Queues["orders"]
		q.Exclusive = true
		b.AddQueue(q)
	})
	one("Somebody's policy sets a dead-letter exchange", topology.Classic, plan.PolicyConflict, func(b *broker) {
		b.userPolicy(topology.Policy{Name: "dlx", Pattern: ".*", ApplyTo: "all", Priority: 1, Definition: topology.Args{"dead-letter-exchange": "dlx", "max-length": int64(9)}})
	})
	one("Somebody's policy is in effect and its pattern can't be followed", topology.Classic, plan.PolicyConflict, func(b *broker) {
		b.AddPolicy(topology.Policy{Name: "possessive", Pattern: "^o++rders", ApplyTo: "all", Priority: 1, Definition: topology.Args{"max-length": int64(9)}})
		b.state("orders", func(s *topology.QueueState) { s.Policy = "possessive" })
	})
	one("A policy of our name has another pattern", topology.Classic, plan.PolicyConflict, func(b *broker) {
		b.userPolicy(topology.Policy{Name: "retry-operator.shop.orders", Pattern: "^other$", ApplyTo: "queues", Priority: 7})
	})
	n.request.ParkingLot = "orders.retry.2.1m"
	one("The parking lot has the name of a tier", topology.Quorum, plan.QueueArgumentMismatch, func(*broker) {})
	return n
}

func lifeOutranked(t *testing.T) *narrative {
	t.Helper()
	n := newNarrative(t)
	theirs := topology.Policy{Name: "everyone", Pattern: ".*", ApplyTo: "all", Priority: 150, Definition: topology.Args{"expires": int64(3600000)}}
	n.broker.target("orders", topology.Classic, nil)
	n.broker.userPolicy(theirs)
	n.say("Somebody's policy for all queues is outranked, and its key repeated")
	n.run(4)
	n.say("They change it: one write follows")
	theirs.Priority, theirs.Definition = 200, topology.Args{"max-length": int64(1000), "queue-version": int64(2)}
	n.broker.userPolicy(theirs)
	n.run(4)
	n.say("It gets a key that classic queues do not support, so the broker leaves it out for this target: nothing is repeated")
	theirs.Definition = topology.Args{"max-length": int64(1000), "delivery-limit": int64(5)}
	n.broker.userPolicy(theirs)
	n.run(4)
	n.say("It gets a dead-letter exchange: refused; ours stays as it is")
	theirs.Definition = topology.Args{"dead-letter-exchange": "theirs"}
	n.broker.userPolicy(theirs)
	n.run(1)
	n.say("They take it away")
	n.broker.dropPolicy("everyone")
	n.run(4)
	return n
}

func lifeOutrankedWhileTargetAway(t *testing.T) *narrative {
	t.Helper()
	n := newNarrative(t)
	theirs := topology.Policy{Name: "everyone", Pattern: "^ord", ApplyTo: "queues", Priority: 3, Definition: topology.Args{"max-length": int64(1000)}}
	n.broker.userPolicy(theirs)
	n.say("Somebody's policy would apply to a target of either type: ours repeats it before the target is there")
	n.run(4)
	n.say("A quorum target appears")
	n.broker.target("orders", topology.Quorum, nil)
	n.run(4)
	n.say("Theirs comes to have another meaning for each type, and the target goes: ours stays with what it has merged")
	theirs.Definition = topology.Args{"max-length": int64(1000), "delivery-limit": int64(50)}
	n.broker.userPolicy(theirs)
	n.run(4)
	n.broker.RemoveQueue("orders")
	n.run(4)
	n.say("The ladder changes while the target is away: ours follows")
	n.request.Delays[0] = 20 * time.Second
	n.run(8)

	n.broker = newBroker()
	n.request = orders()
	n.broker.userPolicy(theirs)
	n.say("Such a policy from the start: none of ours until the target shows its type")
	n.run(4)
	n.say("A classic target appears")
	n.broker.target("orders", topology.Classic, nil)
	n.run(4)
	return n
}

func lifeLengthLimit(t *testing.T) *narrative {
	t.Helper()
	n := settled(t, topology.Quorum)
	n.broker.pending("orders", 4)
	n.say("Somebody's policy with a length limit appears while 4 dead letters are pending: leaving at-least-once would delete them")
	n.broker.userPolicy(topology.Policy{Name: "short", Pattern: "^orders$", ApplyTo: "queues", Definition: topology.Args{"max-length": int64(10)}})
	n.run(2)
	n.say("They are delivered")
	n.broker.pending("orders", 0)
	n.run(3)
	n.say("An operator policy with a length limit, and no user policy: publishers rely on drop-head all the same")
	n.broker.dropPolicy("short")
	n.run(3)
	n.broker.OperatorPolicies["cap"] = topology.Policy{Name: "cap", Pattern: ".*", ApplyTo: "queues", Definition: topology.Args{"max-length": int64(10)}}
	n.broker.state("orders", func(s *topology.QueueState) { s.OperatorPolicy = "cap" })
	n.run(3)
	return n
}
