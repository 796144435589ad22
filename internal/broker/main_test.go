/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

var versions = []string{"4.0", "4.3"}

// brokers are started side by side, once a test asks for one.
var brokers struct {
	start sync.Once
	mu    sync.Mutex
	all   map[string]*sandbox.Broker
	errs  map[string]error
}

func startBrokers() {
	brokers.all, brokers.errs = map[string]*sandbox.Broker{}, map[string]error{}
	var wg sync.WaitGroup
	for _, v := range versions {
		wg.Go(func() {
			b, err := sandbox.StartBroker(context.Background(), func(string, ...any) {}, v)
			brokers.mu.Lock()
			defer brokers.mu.Unlock()
			brokers.all[v], brokers.errs[v] = b, err
		})
	}
	wg.Wait()
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, b := range brokers.all {
		if b != nil {
			if err := b.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}
	}
	os.Exit(code)
}

// onBrokers runs a test on each version, side by side.
func onBrokers(t *testing.T, test func(t *testing.T, b *sandbox.Broker)) {
	t.Helper()
	brokers.start.Do(startBrokers)
	for _, v := range versions {
		t.Run("RabbitMQ "+v, func(t *testing.T) {
			t.Parallel()
			if err := brokers.errs[v]; err != nil {
				t.Fatal(err)
			}
			test(t, brokers.all[v])
		})
	}
}

// admin sends a request past the code under test.
func admin(tb testing.TB, b *sandbox.Broker, method, path string, body any) {
	tb.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		tb.Fatal(err)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, b.ManagementURL+"/api/"+path, bytes.NewReader(data))
	if err != nil {
		tb.Fatal(err)
	}
	req.SetBasicAuth(b.Username, b.Password)
	req.Header.Set("Content-Type", "application/json")
	req.Close = true // the broker closes idle connections, and a PUT is not tried again
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if answer, _ := io.ReadAll(res.Body); res.StatusCode >= 300 {
		tb.Fatalf("%s %s: %s: %s", method, path, res.Status, answer)
	}
}

type object = map[string]any

// newVhost makes a vhost of the name, for the length of the test.
func newVhost(tb testing.TB, b *sandbox.Broker, name string) string {
	tb.Helper()
	admin(tb, b, http.MethodPut, "vhosts/"+url.PathEscape(name), object{})
	if name != "/" {
		tb.Cleanup(func() { admin(tb, b, http.MethodDelete, "vhosts/"+url.PathEscape(name), nil) })
	}
	return name
}

func newQueue(tb testing.TB, b *sandbox.Broker, vhost, name, kind string) {
	tb.Helper()
	admin(tb, b, http.MethodPut, "queues/"+url.PathEscape(vhost)+"/"+url.PathEscape(name),
		object{"durable": true, "arguments": object{"x-queue-type": kind}})
}

func clientOf(tb testing.TB, cfg Config, opts ...Option) *Client {
	tb.Helper()
	c, err := NewClient(cfg, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

func adminConfig(b *sandbox.Broker) Config {
	return Config{ManagementURL: b.ManagementURL, Username: b.Username, Password: b.Password}
}

// proxy stands in front of a broker, counts requests, and lets a test interfere.
type proxy struct {
	*httptest.Server

	requests atomic.Int64
	// before answers a request in place of the broker when it returns true.
	before atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
}

// newProxy serves the broker under a prefix, given in its escaped form.
func newProxy(tb testing.TB, b *sandbox.Broker, prefix string) *proxy {
	tb.Helper()
	target, err := url.Parse(b.ManagementURL)
	if err != nil {
		tb.Fatal(err)
	}
	plain, err := url.PathUnescape(prefix)
	if err != nil {
		tb.Fatal(err)
	}
	p := &proxy{}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.URL.Path = strings.TrimPrefix(r.In.URL.Path, plain)
		r.Out.URL.RawPath = strings.TrimPrefix(r.In.URL.EscapedPath(), prefix)
	}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.requests.Add(1)
		if before := p.before.Load(); before != nil && (*before)(w, r) {
			return
		}
		forward.ServeHTTP(w, r)
	}))
	tb.Cleanup(p.Close)
	return p
}

func (p *proxy) interfere(before func(http.ResponseWriter, *http.Request) bool) {
	p.before.Store(&before)
}

func (p *proxy) config(b *sandbox.Broker) Config {
	return Config{ManagementURL: p.URL, Username: b.Username, Password: b.Password}
}

// fakeBroker is a broker that has nothing in any vhost, without a process. Before, if any,
// answers a request in its place when it returns true.
func fakeBroker(tb testing.TB, before func(http.ResponseWriter, *http.Request) bool) Config {
	tb.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before != nil && before(w, r) {
			return
		}
		answer := "[]"
		if strings.HasSuffix(r.URL.Path, "/overview") {
			answer = `{"rabbitmq_version":"4.3.0"}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	tb.Cleanup(s.Close)
	return Config{ManagementURL: s.URL, Username: "somebody", Password: "secret"}
}

// expectSilent asserts that an error is one short line that keeps the password.
func expectSilent(g *WithT, err error, password string) {
	for _, text := range []string{err.Error(), fmt.Sprintf("%+v %#v %q", err, err, err)} {
		g.Expect(text).NotTo(ContainSubstring(password))
		g.Expect(text).NotTo(ContainSubstring(url.QueryEscape(password)))
	}
	g.Expect(err.Error()).NotTo(ContainSubstring("\n"))
	g.Expect(len(err.Error())).To(BeNumerically("<", 800))
}
