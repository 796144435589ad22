/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retry-operator/rabbitmq-retry-operator/api/v1alpha1"
)

// proxy stands between the operator and a broker's management API and counts requests.
type proxy struct {
	*httptest.Server
	mu       sync.Mutex
	requests []request
	// version, when set, is the one that the broker seems to have.
	version string
}

// request is one that reached the proxy.
type request struct {
	at   time.Time
	text string
}

func (w *world) newProxy() *proxy {
	w.t.Helper()
	target, err := url.Parse(w.broker.ManagementURL)
	w.Expect(err).NotTo(HaveOccurred())
	p := &proxy{}
	reverse := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.URL.RawPath = r.In.URL.RawPath
			r.Out.Header.Del("Accept-Encoding")
		},
		ModifyResponse: p.forgeVersion,
	}
	p.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.requests = append(p.requests, request{time.Now(), r.Method + " " + r.URL.Path})
		p.mu.Unlock()
		reverse.ServeHTTP(rw, r)
	}))
	w.t.Cleanup(p.Close)
	return p
}

func (p *proxy) forgeVersion(resp *http.Response) error {
	if p.version == "" || !strings.HasSuffix(resp.Request.URL.Path, "/api/overview") {
		return nil
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	_, rest, _ := strings.Cut(string(body), `"rabbitmq_version":"`)
	old, _, _ := strings.Cut(rest, `"`)
	forged := strings.ReplaceAll(string(body), `"rabbitmq_version":"`+old, `"rabbitmq_version":"`+p.version)
	resp.Body = io.NopCloser(strings.NewReader(forged))
	resp.ContentLength = int64(len(forged))
	resp.Header.Set("Content-Length", fmt.Sprint(len(forged)))
	return nil
}

// take returns the requests since the last call.
func (p *proxy) take() []request {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.requests
	p.requests = nil
	return out
}

// count says how often a request has come since the last take.
func (p *proxy) count(text string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return times(text, p.requests)
}

func times(text string, in []request) int {
	n := 0
	for _, r := range in {
		if r.text == text {
			n++
		}
	}
	return n
}

func TestFiftyPoliciesInSteadyStateReadALittleAndWriteNothing(t *testing.T) {
	eachBroker(t, func(t *testing.T, version string) {
		const policies, intervals = 50, 10
		w := newWorld(t, version)
		through := w.newProxy()
		w.connect("counted", through.URL, w.broker.Username, w.broker.Password)
		ch := w.channel()
		for i := range policies {
			queue := fmt.Sprintf("q%02d", i)
			_, err := ch.QueueDeclare(queue, true, false, false, false, map[string]any{"x-queue-type": "classic"})
			w.Expect(err).NotTo(HaveOccurred())
			p := w.policy(queue, queue, 2, time.Second)
			p.Spec.BrokerRef.Name = "counted"
			p.Spec.QueueType = v1alpha1.QueueTypeClassic
			w.create(p)
		}
		w.Eventually(func() int { return w.readyPolicies() }).WithTimeout(2 * patience).Should(Equal(policies))
		w.quiet(through)

		lists := w.listsOfALook()
		last := lists[len(lists)-1]
		through.take()
		w.Eventually(func() int { return through.count(last) }).Should(BeNumerically(">", intervals))
		whole, elapsed := wholeLooks(through.take(), last)

		looks := times(last, whole)
		for _, r := range lists {
			w.Expect(times(r, whole)).To(Equal(looks), r+" comes once in a look")
		}
		w.Expect(float64(looks)).To(BeNumerically("<=", elapsed/float64(pollInterval)+1))

		const overview = "GET /api/overview"
		checks := times(overview, whole) - looks
		w.Expect(checks).To(BeNumerically(">=", 0), "each look asks for the version")
		// The connection's own check comes every four intervals, however many policies use it.
		w.Expect(float64(checks)).To(BeNumerically("<=", elapsed/float64(4*pollInterval)+1))

		known := append(lists, overview)
		for _, r := range whole {
			w.Expect(r.text).To(BeElementOf(known), "a request that belongs to no look and no check")
		}
		t.Logf("%d policies: %d looks and %d checks of the connection in %.1f poll intervals", policies, looks, checks, elapsed/float64(pollInterval))
	})
}

// listsOfALook are the lists of the vhost that a look reads, in their order.
func (w *world) listsOfALook() []string {
	var out []string
	for _, kind := range []string{"policies", "operator-policies", "exchanges", "queues", "bindings"} {
		out = append(out, "GET /api/"+kind+"/"+w.vhost)
	}
	return out
}

// wholeLooks cuts the requests to those from the end of one look to the end of another, so
// that no look is counted by half, and returns how long they took. Looks at a vhost never
// overlap, and each begins after the one before has ended: n of them take at least n-1
// intervals, whatever else the machine does.
func wholeLooks(all []request, last string) ([]request, float64) {
	isLast := func(r request) bool { return r.text == last }
	from := slices.IndexFunc(all, isLast)
	to := from
	for i := from; i < len(all); i++ {
		if isLast(all[i]) {
			to = i
		}
	}
	return all[from+1 : to+1], float64(all[to].at.Sub(all[from].at))
}

// quiet waits until a whole poll interval has passed without a write.
func (w *world) quiet(through *proxy) {
	w.t.Helper()
	w.Eventually(func() int {
		writes := 0
		for _, r := range through.take() {
			if !strings.HasPrefix(r.text, "GET ") {
				writes++
			}
		}
		return writes
	}).WithPolling(3 * pollInterval).Should(BeZero())
}

func (w *world) readyPolicies() int {
	list := &v1alpha1.RetryPolicyList{}
	w.Expect(k8s.List(w.t.Context(), list)).To(Succeed())
	n := 0
	for _, p := range list.Items {
		if p.Namespace == w.namespace && meta.IsStatusConditionPresentAndEqual(p.Status.Conditions, v1alpha1.ConditionReady, metav1.ConditionTrue) {
			n++
		}
	}
	return n
}
