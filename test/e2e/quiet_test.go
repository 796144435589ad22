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
	requests []string
	// version, when set, is the one that the broker seems to have.
	version string
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
		p.requests = append(p.requests, r.Method+" "+r.URL.Path)
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
func (p *proxy) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.requests
	p.requests = nil
	return out
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

		through.take()
		start := time.Now()
		w.Eventually(func() int { return int(time.Since(start) / pollInterval) }).Should(BeNumerically(">=", intervals))
		looks := float64(time.Since(start)) / float64(pollInterval)
		requests := through.take()
		t.Logf("%d requests in %.1f poll intervals for %d policies", len(requests), looks, policies)
		for _, r := range requests {
			w.Expect(r).To(HavePrefix("GET "), "a write in steady state")
		}
		// The connection's own check is one more request every four intervals.
		w.Expect(float64(len(requests))).To(BeNumerically("<=", 6*(looks+1)+looks/4+1))
		w.Expect(requests).NotTo(BeEmpty())
	})
}

// quiet waits until a whole poll interval has passed without a write.
func (w *world) quiet(through *proxy) {
	w.t.Helper()
	w.Eventually(func() int {
		writes := 0
		for _, r := range through.take() {
			if !strings.HasPrefix(r, "GET ") {
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
