/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const kindChroot = "chroot"

// chroot is a broker that runs out of a tree of Debian packages.
type chroot struct {
	tree     string
	uid, gid uint32

	mu       sync.Mutex // guards instance
	instance *instance
}

func createChroot(ctx context.Context, log Log, version string, o owner) (runner, error) {
	tree, err := debianTree(ctx, log, version)
	if err != nil {
		return nil, err
	}
	node, err := newNode(version)
	if err != nil {
		return nil, err
	}
	i, err := createInstance(ctx, log, tree, o, node)
	if err != nil {
		return nil, err
	}
	c, err := newChroot(i)
	if err == nil {
		err = c.writeConfig()
	}
	if err != nil {
		return nil, errors.Join(err, i.remove(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func attachChroot(s BrokerState) (runner, error) {
	i, err := loadInstance(s.Path)
	if err != nil {
		return nil, err
	}
	return newChroot(i)
}

func newChroot(i *instance) (*chroot, error) {
	c := &chroot{tree: filepath.Dir(filepath.Dir(i.dir)), instance: i}
	passwd, err := os.ReadFile(filepath.Join(c.tree, "etc", "passwd"))
	if err != nil {
		return nil, fmt.Errorf("find the broker's user: %w", err)
	}
	c.uid, c.gid, err = findUser(string(passwd), "rabbitmq")
	return c, err
}

func findUser(passwd, name string) (uid, gid uint32, err error) {
	for line := range strings.Lines(passwd) {
		fields := strings.Split(line, ":")
		if len(fields) < 4 || fields[0] != name {
			continue
		}
		u, uErr := strconv.ParseUint(fields[2], 10, 32)
		g, gErr := strconv.ParseUint(fields[3], 10, 32)
		return uint32(u), uint32(g), errors.Join(uErr, gErr)
	}
	return 0, 0, fmt.Errorf("find the user %s: the tree has none", name)
}

// inside returns the path of a file of the instance as the broker sees it.
func (c *chroot) inside(elements ...string) string {
	return filepath.Join(append([]string{"/srv", filepath.Base(c.instance.dir)}, elements...)...)
}

func (c *chroot) start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.instance.Broker.Alive() {
		return nil
	}
	// Before the broker, which would start an epmd of its own that nobody ends.
	if err := c.startEPMD(ctx); err != nil {
		return err
	}
	cmd, done, err := c.brokerCommand()
	if err != nil {
		return err
	}
	defer done()
	p, err := StartDetached(cmd)
	if err != nil {
		return err
	}
	c.instance.Broker = p
	return c.instance.save()
}

func (c *chroot) startEPMD(ctx context.Context) error {
	if c.instance.EPMD.Alive() {
		return nil
	}
	port := strconv.Itoa(c.instance.Node.EPMDPort)
	cmd := c.command(context.WithoutCancel(ctx), "/usr/bin/epmd", "-port", port, "-address", "127.0.0.1")
	p, err := StartDetached(cmd)
	if err != nil {
		return err
	}
	c.instance.EPMD = p
	if err := c.instance.save(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	err = Poll(ctx, 20*time.Millisecond, func() (bool, error) {
		conn, err := net.DialTimeout("tcp", "127.0.0.1:"+port, time.Second)
		if err == nil {
			return true, conn.Close()
		}
		return false, nil // not yet is no failure
	})
	if err != nil {
		return fmt.Errorf("wait for epmd: %w", err)
	}
	return nil
}

// brokerScript ends up as the broker itself, by exec, so that the broker leads the
// process group. Without /proc the broker runs, but cannot tell its memory and disk.
const brokerScript = `mount -t proc proc "$0/proc" || echo "no /proc for the broker"
exec chroot --userspec="$1" "$0" /usr/lib/rabbitmq/bin/rabbitmq-server`

func (c *chroot) brokerCommand() (cmd *exec.Cmd, done func(), err error) {
	out, err := os.OpenFile(filepath.Join(c.instance.dir, "log", "console.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open the broker's console: %w", err)
	}
	user := fmt.Sprintf("%d:%d", c.uid, c.gid)
	cmd = exec.Command("/bin/sh", "-c", brokerScript, c.tree, user)
	cmd.SysProcAttr = privateMounts()
	if !canUnshare() { // then a mount would show on the whole machine
		cmd = exec.Command("chroot", "--userspec="+user, c.tree, "/usr/lib/rabbitmq/bin/rabbitmq-server")
	}
	cmd.Env, cmd.Stdout, cmd.Stderr = c.environment(), out, out
	return cmd, func() { _ = out.Close() }, nil
}

// command is a short-lived program of the tree, run as the broker's user.
func (c *chroot) command(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = "/", c.environment()
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Chroot:     c.tree,
		Credential: &syscall.Credential{Uid: c.uid, Gid: c.gid},
	}
	return cmd
}

func (c *chroot) alive(context.Context) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.instance.Broker.Alive()
}

func (c *chroot) shutdown(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.instance.Broker.EndGroup(ctx, time.Minute)
}

func (c *chroot) kill(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.instance.Broker.KillGroup(ctx)
}

func (c *chroot) remove(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.instance.remove(ctx)
}

func (c *chroot) ctl(ctx context.Context, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := c.command(ctx, "/usr/lib/rabbitmq/bin/rabbitmqctl", args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("run rabbitmqctl: %w: %s", err, tail(stdout.String()+stderr.String(), 20))
	}
	return stdout.String(), nil
}

func (c *chroot) logTail(context.Context) string {
	var all strings.Builder
	for _, name := range []string{"console.log", "broker.log"} {
		data, err := os.ReadFile(filepath.Join(c.instance.dir, "log", name))
		if err == nil && len(data) > 0 {
			fmt.Fprintf(&all, "%s:\n%s\n", name, tail(string(data), 25))
		}
	}
	return all.String()
}

func (c *chroot) state() BrokerState {
	return BrokerState{Kind: kindChroot, Path: c.instance.dir, Node: c.instance.Node}
}
