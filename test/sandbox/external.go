/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
)

const kindExternal = "external"

// External is a broker that the sandbox did not start and never ends.
type External struct {
	ManagementURL string `json:"managementURL"`
	AMQPAddress   string `json:"amqpAddress"`
	Version       string `json:"version"`
	Username      string `json:"username"`
	Password      string `json:"password"`
}

// findExternal asks the broker at a management URL with credentials for its version
// and its AMQP port. RABBITMQ_AMQP_ADDRESS (host:port) overrides the latter.
func findExternal(ctx context.Context, raw string) (*External, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.User == nil {
		// The parser's error would show the password.
		return nil, errors.New("read RABBITMQ_URL: it must look like http://user:password@host:15672")
	}
	password, _ := u.User.Password()
	e := &External{Username: u.User.Username(), Password: password}
	u.User = nil
	e.ManagementURL = strings.TrimRight(u.String(), "/")
	body, err := getManagement(ctx, e.ManagementURL, "/api/overview", e.Username, e.Password)
	if err != nil {
		return nil, fmt.Errorf("reach the broker at RABBITMQ_URL: %w", err)
	}
	return e, e.readOverview(body, u.Hostname(), os.Getenv("RABBITMQ_AMQP_ADDRESS"))
}

func (e *External) readOverview(body []byte, host, amqpAddress string) error {
	var overview struct {
		Version   string `json:"rabbitmq_version"`
		Listeners []struct {
			Protocol string `json:"protocol"`
			Port     int    `json:"port"`
		} `json:"listeners"`
	}
	if err := json.Unmarshal(body, &overview); err != nil {
		return fmt.Errorf("read the broker's overview: %w", err)
	}
	e.Version, e.AMQPAddress = majorMinor(overview.Version), amqpAddress
	for _, l := range overview.Listeners {
		if l.Protocol == "amqp" && e.AMQPAddress == "" {
			e.AMQPAddress = net.JoinHostPort(host, strconv.Itoa(l.Port))
		}
	}
	if e.AMQPAddress == "" {
		return errors.New("read the broker's overview: it has no AMQP listener; set RABBITMQ_AMQP_ADDRESS to host:port")
	}
	return nil
}

func majorMinor(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

func (e *External) start(context.Context) error {
	return fmt.Errorf("start the broker: %w", ErrUnsupported)
}
func (e *External) shutdown(context.Context) error {
	return fmt.Errorf("shut the broker down: %w", ErrUnsupported)
}
func (e *External) kill(context.Context) error {
	return fmt.Errorf("kill the broker: %w", ErrUnsupported)
}
func (e *External) remove(context.Context) error   { return nil }
func (e *External) logTail(context.Context) string { return "(unknown)" }

func (e *External) ctl(context.Context, ...string) (string, error) {
	return "", fmt.Errorf("run rabbitmqctl: %w", ErrUnsupported)
}

func (e *External) alive(ctx context.Context) bool {
	_, err := getManagement(ctx, e.ManagementURL, "/api/whoami", e.Username, e.Password)
	return err == nil
}

func (e *External) state() BrokerState {
	return BrokerState{
		Kind:     kindExternal,
		Node:     Node{Version: e.Version, Username: e.Username, Password: e.Password},
		External: e,
	}
}
