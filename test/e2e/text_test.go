/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package e2e

import (
	"fmt"
	"slices"
	"strings"
)

// text renders a decoded JSON value; maps print in the order of their keys.
func text(v any) string { return fmt.Sprintf(" %v", v) }

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

// slug makes the name of an object of a sentence.
func slug(sentence string) string { return strings.ToLower(strings.ReplaceAll(sentence, " ", "-")) }
