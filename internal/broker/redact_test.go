/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package broker

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestQuoteTakesThePasswordOut(t *testing.T) {
	g := NewWithT(t)
	c := clientOf(t, Config{ManagementURL: "http://h:1", Username: "u", Password: oddPassword})
	for _, form := range []string{
		oddPassword, url.QueryEscape(oddPassword), url.PathEscape(oddPassword), fmt.Sprintf("%q", oddPassword),
		(&url.URL{Scheme: "http", User: url.UserPassword("u", oddPassword), Host: "h"}).String(),
		"Basic " + base64.StdEncoding.EncodeToString([]byte("u:"+oddPassword)),
	} {
		quoted := c.quote("before " + form + " after")
		g.Expect(quoted).To(SatisfyAll(ContainSubstring("[password]"), HavePrefix("before"), HaveSuffix("after")), form)
	}
	g.Expect(c.quote("a\nb\x00c\xff")).To(Equal("a b c\uFFFD"))
	g.Expect(c.quote(strings.Repeat("日", 500))).To(HaveSuffix("日…"))
}

func TestNothingPrintsThePassword(t *testing.T) {
	g := NewWithT(t)
	cfg := Config{ManagementURL: "http://h:1", Username: "u", Password: "hidden"}
	c := clientOf(t, cfg)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		g.Expect(fmt.Sprintf(verb+verb+verb, cfg, &cfg, c)).NotTo(ContainSubstring("hidden"), verb)
	}
	data, err := json.Marshal(cfg)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(data)).NotTo(ContainSubstring("hidden"))
	g.Expect(cfg.String()).To(Equal(`http://h:1 as user "u"`))
}

func TestManagementURL(t *testing.T) {
	for name, tc := range map[string]struct{ given, endpoint, refused string }{
		"plain":              {given: "http://h:15672", endpoint: "http://h:15672"},
		"with a slash":       {given: "https://h/", endpoint: "https://h"},
		"with a prefix":      {given: "https://h/rabbit/one//", endpoint: "https://h/rabbit/one"},
		"with an odd prefix": {given: "https://h/a%2Fb/", endpoint: "https://h/a%2Fb"},
		"an IPv6 literal":    {given: "http://[::1]:15672/", endpoint: "http://[::1]:15672"},
		"without a scheme":   {given: "h:15672", refused: "http(s)://"},
		"another scheme":     {given: "amqp://h:15672", refused: "http(s)://"},
		"without a host":     {given: "http:///x", refused: "http(s)://"},
		"unreadable":         {given: "http://h:secret%zz", refused: "http(s)://"},
		"empty":              {refused: "http(s)://"},
		"with credentials":   {given: "http://u:secret@h", refused: "belong in the Secret"},
		"with a query":       {given: "http://h/?token=secret", refused: "query"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c, err := NewClient(Config{ManagementURL: tc.given})
			if tc.refused != "" {
				g.Expect(err).To(MatchError(SatisfyAll(ContainSubstring(tc.refused), Not(ContainSubstring("secret")))))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.endpoint).To(Equal(tc.endpoint))
		})
	}
}
