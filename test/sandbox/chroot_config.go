/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// loopbackOnly keeps Erlang's distribution off the network.
const loopbackOnly = "-kernel inet_dist_use_interface {127,0,0,1}"

// environment is all that the broker and rabbitmqctl know of the instance.
func (c *chroot) environment() []string {
	n := c.instance.Node
	return []string{
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
		"LANG=C.UTF-8",
		"HOME=" + c.inside(), // for .erlang.cookie
		// The start script then becomes the broker, instead of waiting for it.
		"RUNNING_UNDER_SYSTEMD=true",
		"RABBITMQ_CONF_ENV_FILE=/dev/null",
		"RABBITMQ_NODENAME=" + n.Name,
		"RABBITMQ_CONFIG_FILE=" + c.inside("rabbitmq.conf"),
		"RABBITMQ_ADVANCED_CONFIG_FILE=" + c.inside("advanced.config"),
		"RABBITMQ_ENABLED_PLUGINS_FILE=" + c.inside("enabled_plugins"),
		"RABBITMQ_GENERATED_CONFIG_DIR=" + c.inside("data", "config"),
		"RABBITMQ_MNESIA_BASE=" + c.inside("data"),
		"RABBITMQ_PID_FILE=" + c.inside("data", "pid"),
		"RABBITMQ_LOG_BASE=" + c.inside("log"),
		"RABBITMQ_LOGS=" + c.inside("log", "broker.log"),
		fmt.Sprintf("RABBITMQ_DIST_PORT=%d", n.DistPort),
		fmt.Sprintf("ERL_EPMD_PORT=%d", n.EPMDPort),
		"ERL_EPMD_ADDRESS=127.0.0.1",
		"ERL_CRASH_DUMP_SECONDS=0", // none: it takes longer than a restart
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-start_epmd false " + loopbackOnly,
		"RABBITMQ_CTL_ERL_ARGS=" + loopbackOnly,
	}
}

func brokerConfig(n Node) string {
	return fmt.Sprintf(`listeners.tcp.default = 127.0.0.1:%d
management.tcp.ip = 127.0.0.1
management.tcp.port = %d
loopback_users = none
default_user = %s
default_pass = %s
default_user_tags.administrator = true
disk_free_limit.absolute = 50MB
vm_memory_high_watermark.relative = 0.3
log.file.level = info
`, n.AMQPPort, n.ManagementPort, n.Username, n.Password)
}

// writeConfig writes what the broker reads at its start, for its user's eyes only.
func (c *chroot) writeConfig() error {
	dir, n := c.instance.dir, c.instance.Node
	plugins, err := c.plugins()
	if err != nil {
		return err
	}
	files := map[string]string{
		"rabbitmq.conf":   brokerConfig(n),
		"enabled_plugins": "[" + strings.Join(plugins, ",") + "].\n",
		".erlang.cookie":  n.Cookie,
	}
	var errs []error
	for name, content := range files {
		errs = append(errs, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	for _, sub := range []string{"data", "log"} {
		errs = append(errs, os.Mkdir(filepath.Join(dir, sub), 0o700))
	}
	for _, name := range []string{"data", "log", "rabbitmq.conf", "enabled_plugins", ".erlang.cookie"} {
		errs = append(errs, os.Chown(filepath.Join(dir, name), int(c.uid), int(c.gid)))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("write the broker's configuration: %w", err)
	}
	return nil
}

// plugins are those of the wanted plugins that the tree has.
func (c *chroot) plugins() ([]string, error) {
	var found []string
	for _, name := range append([]string{"rabbitmq_management"}, strings.Fields(extraPlugins)...) {
		matches, err := filepath.Glob(filepath.Join(c.tree, "usr/lib/rabbitmq/lib/*/plugins", name+"-*"))
		if err != nil {
			return nil, fmt.Errorf("find the broker's plugins: %w", err)
		}
		if len(matches) > 0 {
			found = append(found, name)
		}
	}
	if len(found) == 0 {
		return nil, errors.New("find the broker's plugins: " + c.tree + " has no RabbitMQ")
	}
	return found, nil
}
