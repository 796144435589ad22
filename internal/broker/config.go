/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package broker

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Config says where a broker is and who asks. No way of printing it shows the password.
type Config struct {
	// ManagementURL may have a path prefix, as behind a reverse proxy.
	ManagementURL string
	Username      string
	Password      string `json:"-"`
}

// String leaves the password out.
func (c Config) String() string {
	u, err := c.parseURL()
	if err != nil {
		return fmt.Sprintf("user %q", c.Username)
	}
	return fmt.Sprintf("%s as user %q", u.String(), c.Username)
}

// Format keeps the password out of every verb, %d and %#v too.
func (c Config) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, c.String()) }

// parseURL never quotes the address: somebody may have put credentials into it.
func (c Config) parseURL() (*url.URL, error) {
	u, err := url.Parse(c.ManagementURL)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", u.Opaque != "":
		return nil, errors.New("read managementURL: it is not of the form http(s)://host:port")
	case u.User != nil:
		return nil, errors.New("read managementURL: it has credentials, which belong in the Secret")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("read managementURL: it has a query or a fragment; leave both out")
	}
	trimmed := strings.TrimRight(u.EscapedPath(), "/")
	u.RawPath = trimmed
	if u.Path, err = url.PathUnescape(trimmed); err != nil {
		return nil, errors.New("read managementURL: its path can't be read")
	}
	return u, nil
}
