/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package broker

import (
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxQuote bounds what an error repeats of somebody else's words.
	maxQuote = 300
	// maxName bounds the operation, with the name of its object.
	maxName = 400
)

// quote makes somebody else's words fit for a message: one line, not long, and without
// the password in any of the forms in which it may come back.
func (c *Client) quote(s string) string {
	p := c.cfg.Password
	if p != "" {
		quoted := strconv.Quote(p)
		for _, form := range []string{
			base64.StdEncoding.EncodeToString([]byte(c.cfg.Username + ":" + p)),
			p, url.QueryEscape(p), url.PathEscape(p), url.UserPassword("", p).String()[1:], quoted[1 : len(quoted)-1],
		} {
			s = strings.ReplaceAll(s, form, "[password]")
		}
	}
	return oneLine(s, maxQuote)
}

func oneLine(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Join(strings.FieldsFunc(s, unicode.IsControl), " ")
	if len(s) <= limit {
		return s
	}
	s = s[:limit]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "…"
}
