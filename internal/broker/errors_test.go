/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package broker

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/retry-operator/rabbitmq-retry-operator/internal/plan"
	"github.com/retry-operator/rabbitmq-retry-operator/internal/topology"
	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

// oddPassword has what breaks logs, headers, addresses and quoting.
const oddPassword = "p:a@s%s/w\no\"r d\\ü"

func newUser(tb testing.TB, b *sandbox.Broker, name, tags string) Config {
	tb.Helper()
	admin(tb, b, http.MethodPut, "users/"+name, object{"password": oddPassword, "tags": tags})
	tb.Cleanup(func() { admin(tb, b, http.MethodDelete, "users/"+name, nil) })
	return Config{ManagementURL: b.ManagementURL, Username: name, Password: oddPassword}
}

func grant(tb testing.TB, b *sandbox.Broker, vhost, user, pattern string) {
	tb.Helper()
	admin(tb, b, http.MethodPut, "permissions/"+url.PathEscape(vhost)+"/"+user, object{"configure": pattern, "write": pattern, "read": pattern})
}

func TestErrorsTellWhatToDo(t *testing.T) {
	queue := plan.Step{Action: plan.DeclareQueue, Queue: topology.Queue{Name: "x", Type: topology.Classic, Durable: true}}
	policy := plan.Step{Action: plan.PutPolicy, Policy: topology.Policy{Name: "x", Pattern: "x", ApplyTo: "queues", Definition: topology.Args{"max-length": int64(1)}}}
	remove := plan.Step{Action: plan.DeletePolicy, Policy: topology.Policy{Name: "other"}}
	removeQueue := plan.Step{Action: plan.DeleteQueue, Queue: topology.Queue{Name: "q"}}
	removeNothing := plan.Step{Action: plan.DeleteQueue, Queue: topology.Queue{Name: "nothing"}}

	tests := map[string]struct {
		tags, permission string
		password         string
		vhost            string // other than the test's
		step             *plan.Step
		class            Class
		says             string
	}{
		"a wrong password":                              {tags: "policymaker", permission: ".*", password: "x" + oddPassword, class: AuthenticationFailed, says: "does not accept user"},
		"a wrong password on a write":                   {tags: "policymaker", permission: ".*", password: "x" + oddPassword, step: &queue, class: AuthenticationFailed},
		"no tag":                                        {permission: ".*", class: PermissionDenied, says: "policymaker"},
		"no tag on a write":                             {permission: ".*", step: &queue, class: PermissionDenied, says: "policymaker"},
		"no access to the vhost":                        {tags: "policymaker", class: PermissionDenied, says: "configure, write and read"},
		"no access to the vhost, monitoring":            {tags: "policymaker,monitoring", class: PermissionDenied, says: "configure, write and read"},
		"no access to the vhost on a write":             {tags: "policymaker", step: &queue, class: PermissionDenied, says: "configure, write and read"},
		"no access to the vhost on a delete":            {tags: "policymaker", step: &removeQueue, class: PermissionDenied, says: "configure, write and read"},
		"no access to the vhost on a delete of nothing": {tags: "policymaker", step: &removeNothing, class: PermissionDenied, says: "configure, write and read"},
		"an unknown vhost":                              {tags: "policymaker", permission: ".*", vhost: "unknown/%2F", class: VhostNotFound, says: "does not exist"},
		"an unknown vhost, administrator":               {tags: "administrator", permission: ".*", vhost: "unknown", class: VhostNotFound},
		"an unknown vhost, monitoring":                  {tags: "policymaker,monitoring", permission: ".*", vhost: "unknown", class: VhostNotFound},
		"an unknown vhost on a write":                   {tags: "policymaker", permission: ".*", vhost: "unknown", step: &queue, class: VhostNotFound},
		"an unknown vhost on a policy":                  {tags: "policymaker", permission: ".*", vhost: "unknown", step: &policy, class: VhostNotFound},
		"an unknown vhost on a delete":                  {tags: "policymaker", permission: ".*", vhost: "unknown", step: &removeQueue, class: VhostNotFound},
		"a policy without policymaker":                  {tags: "management", permission: ".*", step: &policy, class: PermissionDenied, says: "lacks the tag policymaker"},
		"taking off a policy without policymaker":       {tags: "monitoring", permission: ".*", step: &remove, class: PermissionDenied, says: "lacks the tag policymaker"},
		"a queue without configure":                     {tags: "policymaker", permission: "^only$", step: &queue, class: PermissionDenied, says: "configure and read permission on the queue"},
		"deleting a queue without configure":            {tags: "policymaker", permission: "^only$", step: &removeQueue, class: PermissionDenied, says: "configure permission on the queue"},
		"deleting nothing is no error":                  {tags: "policymaker", permission: ".*", step: &removeNothing},
		"observing takes no permission on the objects":  {tags: "management", permission: "^$"},
	}
	onBrokers(t, func(t *testing.T, b *sandbox.Broker) {
		vhost := newVhost(t, b, "errors/of")
		for name, tc := range tests {
			t.Run(name, func(t *testing.T) {
				g := NewWithT(t)
				newQueue(t, b, vhost, "q", topology.Classic)
				admin(t, b, http.MethodPut, "policies/"+url.PathEscape(vhost)+"/other", object{"pattern": "^other$", "definition": object{"max-length": 1}})
				cfg := newUser(t, b, "somebody", tc.tags)
				if tc.permission != "" {
					grant(t, b, vhost, "somebody", tc.permission)
				}
				if tc.password != "" {
					cfg.Password = tc.password
				}
				v := vhost
				if tc.vhost != "" {
					v = tc.vhost
				}
				c := clientOf(t, cfg)
				var err error
				if tc.step == nil {
					_, err = c.Observe(t.Context(), v)
				} else {
					err = c.Apply(t.Context(), v, []plan.Step{*tc.step}).Err
				}
				g.Expect(ClassOf(err)).To(Equal(tc.class), "%v", err)
				if tc.class != "" {
					g.Expect(err.Error()).To(SatisfyAll(ContainSubstring(tc.says), ContainSubstring(c.host)))
					expectSilent(g, err, cfg.Password)
				} else {
					g.Expect(err).NotTo(HaveOccurred())
				}
			})
		}
	})
}

func TestAHangingServerTimesOut(t *testing.T) {
	g := NewWithT(t)
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts, in the kernel, and never answers
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = l.Close() }()
	c := clientOf(t, Config{ManagementURL: "http://" + l.Addr().String(), Username: "u", Password: "secret"}, WithTimeout(50*time.Millisecond))

	_, err = c.Observe(t.Context(), "/")
	g.Expect(ClassOf(err)).To(Equal(Unreachable))
	g.Expect(err.Error()).To(HaveSuffix("no answer within 50ms"))
	g.Expect(errors.Is(err, context.DeadlineExceeded)).To(BeTrue())

	r := c.Apply(t.Context(), "/", []plan.Step{{Action: plan.DeleteQueue, Queue: topology.Queue{Name: "q"}}})
	g.Expect(ClassOf(r.Err)).To(Equal(Unreachable))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = clientOf(t, c.cfg).About(ctx)
	g.Expect(errors.Is(err, context.Canceled)).To(BeTrue())
	g.Expect(ClassOf(err)).To(Equal(Unreachable))
}

func TestWhatIsNotTheManagementAPIIsSaidSo(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *sandbox.Broker) {
		for name, tc := range map[string]struct {
			answer func(http.ResponseWriter, *http.Request)
			class  Class
			says   string
		}{
			"a login page": {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>" + b.Password)) }, Internal, "managementURL"},
			"not found":    {http.NotFound, Internal, "managementURL"},
			"a redirect": {func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "https://other.example/"+b.Password, http.StatusFound)
			}, Unreachable, "https://other.example"},
			"a failing gateway": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, b.Password, http.StatusBadGateway) }, Internal, "502"},
			"an echo of credentials": {func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = w.Write([]byte(`{"error":"bad_request","reason":"` + strings.Repeat("long\\n", 100) + b.Password + `"}`))
			}, Rejected, "long long"},
		} {
			t.Run(name, func(t *testing.T) {
				g := NewWithT(t)
				p := newProxy(t, b, "")
				p.interfere(func(w http.ResponseWriter, r *http.Request) bool { tc.answer(w, r); return true })
				_, err := clientOf(t, p.config(b)).Observe(t.Context(), "/")
				g.Expect(ClassOf(err)).To(Equal(tc.class), "%v", err)
				g.Expect(err.Error()).To(ContainSubstring(tc.says))
				expectSilent(g, err, b.Password)
			})
		}
	})
}

func TestAVhostWhoseBindingsCannotBeListed(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *sandbox.Broker) {
		g := NewWithT(t)
		vhost := newVhost(t, b, "tilde")
		newQueue(t, b, vhost, "q", topology.Classic)
		c := clientOf(t, adminConfig(b))
		// The broker makes the binding, and fails to say what it has named it.
		c.Apply(t.Context(), vhost, []plan.Step{{Action: plan.Bind, Binding: topology.Binding{
			Source: "amq.topic", Destination: "q", RoutingKey: "a~b", Arguments: topology.Args{"n": int64(1)},
		}}})
		_, err := c.Observe(t.Context(), vhost)
		g.Expect(ClassOf(err)).To(Equal(Internal))
		g.Expect(err.Error()).To(ContainSubstring("routing key with a ~"))
	})
}

// A vhost counts as gone only where the broker has said so: who hears it gives up cleaning.
func TestAVhostIsMissingOnlyWhenTheBrokerSaysSo(t *testing.T) {
	list := func(status int, body string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	for name, tc := range map[string]struct {
		vhosts func(http.ResponseWriter, *http.Request)
		class  Class
		says   string
	}{
		"it is not in the list":      {list(http.StatusOK, `[{"name":"/"}]`), VhostNotFound, "does not exist"},
		"it is in the list":          {list(http.StatusOK, `[{"name":"v"}]`), PermissionDenied, "no access"},
		"the list fails":             {list(http.StatusInternalServerError, ""), Internal, "status 500"},
		"the list is refused":        {list(http.StatusUnauthorized, ""), Rejected, "status 401"},
		"the list can't be read":     {list(http.StatusOK, "<html>"), Internal, "managementURL"},
		"the list is not there":      {list(http.StatusNotFound, ""), Rejected, "status 404"},
		"the list takes too long":    {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, Unreachable, "no answer within"},
		"the connection is cut then": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, Unreachable, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c := clientOf(t, fakeBroker(t, func(w http.ResponseWriter, r *http.Request) bool {
				switch r.URL.Path {
				case "/api/whoami":
					_, _ = w.Write([]byte(`{"name":"somebody","tags":["monitoring"]}`))
				case "/api/policies/v":
					http.NotFound(w, r)
				case "/api/vhosts":
					tc.vhosts(w, r)
				default:
					return false
				}
				return true
			}), WithTimeout(500*time.Millisecond))
			_, err := c.Observe(t.Context(), "v")
			g.Expect(ClassOf(err)).To(Equal(tc.class), "%v", err)
			g.Expect(err.Error()).To(ContainSubstring(tc.says))
		})
	}
}
