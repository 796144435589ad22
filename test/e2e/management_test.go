/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

// management is the broker's HTTP API as an administrator uses it by hand.
type management struct {
	base, username, password string
}

func managementOf(b *sandbox.Broker) management {
	return management{base: strings.TrimSuffix(b.ManagementURL, "/"), username: b.Username, password: b.Password}
}

// path joins escaped parts below /api.
func path(parts ...string) string {
	escaped := make([]string, 0, len(parts))
	for _, p := range parts {
		escaped = append(escaped, url.PathEscape(p))
	}
	return "/api/" + strings.Join(escaped, "/")
}

// do sends a request and returns the status and the decoded body.
func (m management) do(ctx context.Context, method, path string, body any) (int, any, error) {
	var reader io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		reader = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, m.base+path, reader)
	if err != nil {
		return 0, nil, err
	}
	req.SetBasicAuth(m.username, m.password)
	req.Close = true // the broker closes idle connections, and a PUT is not tried again
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, err
	}
	var decoded any
	if len(data) > 0 {
		_ = json.Unmarshal(data, &decoded) // a DELETE answers with no JSON
	}
	return resp.StatusCode, decoded, nil
}

// must sends a request that has to succeed.
func (m management) must(t *testing.T, method, path string, body any) any {
	t.Helper()
	status, decoded, err := m.do(t.Context(), method, path, body)
	if err != nil || status >= 300 {
		t.Fatalf("%s %s: status %d, %v %v", method, path, status, decoded, err)
	}
	return decoded
}

// list returns the objects of a list call.
func (m management) list(t *testing.T, path string) []map[string]any {
	t.Helper()
	var out []map[string]any
	items, ok := m.must(t, http.MethodGet, path, nil).([]any)
	if !ok {
		t.Fatalf("GET %s: not a list", path)
	}
	for _, item := range items {
		if o, ok := item.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}

// addUser makes a user with tags and, unless permissions is empty, permissions on a vhost.
func (m management) addUser(t *testing.T, name, password, tags, vhost, permissions string) {
	t.Helper()
	m.must(t, http.MethodPut, path("users", name), map[string]any{"password": password, "tags": tags})
	if permissions != "" {
		m.grant(t, vhost, name, permissions)
	}
	t.Cleanup(func() {
		if status, _, err := m.do(context.WithoutCancel(t.Context()), http.MethodDelete, path("users", name), nil); err != nil || status >= 300 {
			t.Logf("delete user %s: status %d, %v", name, status, err)
		}
	})
}

func (m management) grant(t *testing.T, vhost, user, permissions string) {
	t.Helper()
	m.must(t, http.MethodPut, path("permissions", vhost, user),
		map[string]any{"configure": permissions, "write": permissions, "read": permissions})
}

func named(kind string, o map[string]any) string { return fmt.Sprintf("%s %v", kind, o["name"]) }
