/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// missingForChroot lists what keeps this machine from running a broker out of
// Debian packages.
func missingForChroot() []string {
	if runtime.GOOS != "linux" {
		return []string{"Linux (this is " + runtime.GOOS + ")"}
	}
	var missing []string
	if os.Geteuid() != 0 {
		missing = append(missing, "root")
	}
	if _, err := exec.LookPath("apt-get"); err != nil && !hasDebootstrap() {
		missing = append(missing, "Debian (no apt-get and no debootstrap)")
	}
	return missing
}

func hasDebootstrap() bool {
	_, err := exec.LookPath("debootstrap")
	return err == nil
}

func noBrokerError(missing []string) error {
	return errors.New("no way to run RabbitMQ here: no container engine answers (docker info, podman info), " +
		"and running it from Debian packages needs " + strings.Join(missing, " and ") + ".\n" + ExistingHint)
}

// ExistingHint says how to use a broker and a cluster that are there already.
const ExistingHint = `To use an existing broker:  export RABBITMQ_URL=http://user:password@host:15672
To use an existing cluster: export SANDBOX_USE_CLUSTER=1 KUBECONFIG=/path/to/kubeconfig`
