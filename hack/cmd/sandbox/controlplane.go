/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/discovery"

	"github.com/retry-operator/rabbitmq-retry-operator/test/sandbox"
)

const startTimeout = 2 * time.Minute

// controlPlane brings up etcd and the API server.
func (b *box) controlPlane(ctx context.Context, assets string) error {
	etcd, api := &b.state.Etcd, &b.state.APIServer
	if err := errors.Join(etcd.ports(2), api.ports(1)); err != nil {
		return err
	}
	if err := b.credentials(fmt.Sprintf("https://127.0.0.1:%d", api.Ports[0])); err != nil {
		return err
	}
	if etcd.Process.Alive() && api.Process.Alive() {
		say("The API server is running at port %d", api.Ports[0])
		return b.waitAPIServer(ctx)
	}
	if !etcd.Process.Alive() {
		say("Starting etcd")
		if err := b.launch("etcd", etcd, exec.Command(filepath.Join(assets, "etcd"), b.etcdArgs()...)); err != nil {
			return err
		}
	}
	if !api.Process.Alive() {
		say("Starting kube-apiserver")
		cmd := exec.Command(filepath.Join(assets, "kube-apiserver"), b.apiServerArgs()...)
		if err := b.launch("kube-apiserver", api, cmd); err != nil {
			return err
		}
	}
	if err := b.waitAPIServer(ctx); err != nil {
		return err
	}
	say("The API server answers at port %d", api.Ports[0])
	return nil
}

func (b *box) etcdArgs() []string {
	clients := fmt.Sprintf("http://127.0.0.1:%d", b.state.Etcd.Ports[0])
	peers := fmt.Sprintf("http://127.0.0.1:%d", b.state.Etcd.Ports[1])
	return []string{
		"--name=sandbox",
		"--data-dir=" + b.path("etcd"),
		"--listen-client-urls=" + clients,
		"--advertise-client-urls=" + clients,
		"--listen-peer-urls=" + peers,
		"--initial-advertise-peer-urls=" + peers,
		"--initial-cluster=sandbox=" + peers,
		"--unsafe-no-fsync", // nothing in here has to outlive a power cut
	}
}

func (b *box) apiServerArgs() []string {
	address := fmt.Sprintf("https://127.0.0.1:%d", b.state.APIServer.Ports[0])
	return []string{
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", b.state.Etcd.Ports[0]),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		// The Service kubernetes must not point to loopback; nothing here uses it.
		"--endpoint-reconciler-type=none",
		fmt.Sprintf("--secure-port=%d", b.state.APIServer.Ports[0]),
		"--authorization-mode=RBAC",
		"--client-ca-file=" + b.path("ca.crt"),
		"--tls-cert-file=" + b.path("server.crt"),
		"--tls-private-key-file=" + b.path("server.key"),
		"--cert-dir=" + b.dir,
		"--service-account-issuer=" + address,
		"--service-account-key-file=" + b.path("service-accounts.key"),
		"--service-account-signing-key-file=" + b.path("service-accounts.key"),
		"--service-cluster-ip-range=10.0.0.0/24",
		// No controller makes the service accounts that this plugin waits for.
		"--disable-admission-plugins=ServiceAccount",
	}
}

func (b *box) waitAPIServer(ctx context.Context) error {
	config, err := restConfig(b.path("kubeconfig"))
	if err != nil {
		return err
	}
	config.Timeout = 10 * time.Second
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client of the API server: %w", err)
	}
	return b.wait(ctx, "kube-apiserver", &b.state.APIServer, func(ctx context.Context) error {
		return client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// wait waits until a service answers. It gives up at once when the service has ended.
func (b *box) wait(ctx context.Context, name string, s *service, probe func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var last error
	err := sandbox.Poll(ctx, 100*time.Millisecond, func() (bool, error) {
		if last = probe(ctx); last == nil {
			return true, nil
		}
		if !s.Process.Alive() {
			return false, errors.New("it ended")
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("wait for %s: %w (last answer: %s); %s ends with:\n%s",
			name, err, fmt.Sprint(last), b.relative(name+".log"), b.logTail(name))
	}
	return nil
}

func (b *box) logTail(name string) string {
	data, err := os.ReadFile(b.path(name + ".log"))
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}
