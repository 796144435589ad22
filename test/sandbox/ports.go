/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package sandbox

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// The ports to pick from lie below those that systems give to outgoing connections, so
// that none of those takes a port between its choice and the start of its server.
const (
	firstPort = 15000
	lastPort  = 29999
	tries     = 1000
)

// FreePorts picks n different loopback ports that nothing listens on.
func FreePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range tries {
		if len(ports) == n {
			return ports, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			continue // taken, and as good as any other reason to try another
		}
		// All listeners stay open until the last is picked, so that no port comes twice.
		defer func() { _ = l.Close() }()
		ports = append(ports, port)
	}
	return nil, fmt.Errorf("pick %d free ports between %d and %d: %w", n, firstPort, lastPort, errors.New("all that were tried are taken"))
}
