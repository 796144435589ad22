/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package broker

import "time"

// backoff remembers a failure, so that whoever asks meanwhile is answered without a
// request.
type backoff struct {
	failures int
	err      error
	until    time.Time
}

// active reports whether the failure still answers.
func (b backoff) active(now time.Time) bool { return b.err != nil && now.Before(b.until) }

// next returns the backoff after one more failure: it doubles from the interval to four
// of them. Jitter is in [0,1) and spreads it by 20 % to either side.
func (b backoff) next(err error, now time.Time, interval time.Duration, jitter float64) backoff {
	wait := interval << min(b.failures, 2)
	wait = time.Duration(float64(wait) * (0.8 + 0.4*jitter))
	return backoff{failures: b.failures + 1, err: err, until: now.Add(wait)}
}
