/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package broker

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

func TestLoggingInOverAMQP(t *testing.T) {
	tests := map[string]struct {
		vhost    string
		password string // in place of the right one
		class    Class
		says     string
	}{
		"a vhost that the user may use":      {vhost: "amqp/login"},
		"no vhost, and / closed to the user": {vhost: ""},
		"/ closed to the user":               {vhost: "/", class: PermissionDenied, says: `vhost "/"`},
		"an unknown vhost":                   {vhost: "unknown", class: PermissionDenied, says: `vhost "unknown"`},
		"a wrong password":                   {vhost: "amqp/login", password: "x" + oddPassword, class: AuthenticationFailed, says: `"amqp-user"`},
		"a wrong password, no vhost":         {vhost: "", password: "x" + oddPassword, class: AuthenticationFailed},
	}
	onBrokers(t, func(t *testing.T, b *sandbox.Broker) {
		vhost := newVhost(t, b, "amqp/login")
		cfg := newUser(t, b, "amqp-user", "")
		grant(t, b, vhost, "amqp-user", "^$")
		for name, tc := range tests {
			t.Run(name, func(t *testing.T) {
				g := NewWithT(t)
				password := cfg.Password
				if tc.password != "" {
					password = tc.password
				}
				err := CheckAMQP(t.Context(), "amqp://"+b.AMQPAddress(), cfg.Username, password, tc.vhost)
				if tc.class == "" {
					g.Expect(err).NotTo(HaveOccurred())
					return
				}
				g.Expect(ClassOf(err)).To(Equal(tc.class), "%v", err)
				g.Expect(err.Error()).To(SatisfyAll(ContainSubstring(tc.says), ContainSubstring(" on "+b.AMQPAddress()+": ")))
				expectSilent(g, err, password)
			})
		}
	})
}

func TestAnAMQPPortThatDoesNotAnswer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, in the kernel, and never answers
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	defer func() { _ = silent.Close() }()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(closed.Close()).To(Succeed())
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains of each handshake
	secure.StartTLS()
	defer secure.Close()
	host := func(s *httptest.Server) string { return strings.SplitN(s.URL, "//", 2)[1] }

	for name, tc := range map[string]struct{ address, host, says string }{
		"closed":                     {"amqp://" + closed.Addr().String(), closed.Addr().String(), "connection refused"},
		"silent":                     {"amqp://" + silent.Addr().String(), silent.Addr().String(), "deadline exceeded"},
		"silent to TLS":              {"amqps://" + silent.Addr().String(), silent.Addr().String(), "deadline exceeded"},
		"TLS alone":                  {"amqp://" + host(secure), host(secure), "the handshake failed"},
		"no TLS":                     {"amqps://" + host(web), host(web), "TLS"},
		"an untrusted certificate":   {"amqps://" + host(secure), host(secure), "certificate"},
		"credentials in the address": {"amqp://user:secret@" + closed.Addr().String() + "/v?x=secret", closed.Addr().String(), "connection refused"},
		"another scheme":             {"http://" + host(web), host(web), "scheme"},
		"no address":                 {"amqp://user:secret@:5672 x", "amqpURL", "not of the form"},
		"no host":                    {"amqp://:5672", "amqpURL", "not of the form"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			err := CheckAMQP(ctx, tc.address, "user", "secret", "v")
			g.Expect(time.Since(began)).To(BeNumerically("<", 5*time.Second))
			g.Expect(ClassOf(err)).To(Equal(AMQPUnreachable), "%v", err)
			g.Expect(err.Error()).To(SatisfyAll(HavePrefix(`log in over AMQP to vhost "v" on `+tc.host+": "), ContainSubstring(tc.says)))
			expectSilent(g, err, "secret")
		})
	}
}

// The library takes a connection that closes after the password for a wrong password.
func TestABrokerThatFallsSilentAfterThePasswordIsUnreachable(t *testing.T) {
	onBrokers(t, func(t *testing.T, b *sandbox.Broker) {
		g := NewWithT(t)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		g.Expect(err).NotTo(HaveOccurred())
		defer func() { _ = l.Close() }()
		go relayFirstWords(l, b.AMQPAddress())
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		err = CheckAMQP(ctx, "amqp://"+l.Addr().String(), b.Username, b.Password, "")
		g.Expect(ClassOf(err)).To(Equal(AMQPUnreachable), "%v", err)
		g.Expect(errors.Is(err, context.DeadlineExceeded)).To(BeTrue())
	})
}

// relayFirstWords passes on the client's header and the broker's first frame, and no more.
func relayFirstWords(l net.Listener, address string) {
	client, err := l.Accept()
	if err != nil {
		return
	}
	server, err := new(net.Dialer).DialContext(context.Background(), "tcp", address)
	if err != nil {
		return
	}
	defer func() { _, _ = client.Close(), server.Close() }()
	buffer := make([]byte, 4096)
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		n, err := way[0].Read(buffer)
		if err == nil {
			_, err = way[1].Write(buffer[:n])
		}
		if err != nil {
			return
		}
	}
	for err == nil { // swallows what follows, until the client is gone
		_, err = client.Read(buffer)
	}
}
