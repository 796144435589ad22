/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// quietTime is how long plain output waits before it draws the picture again.
const quietTime = time.Second

// screen writes lines that stay, and a picture: in place below them on a terminal, else
// as one line whenever it has changed.
type screen struct {
	out   io.Writer
	live  bool
	width func() int // of the terminal
	now   func() time.Time

	drawn  []string // the picture that is on the terminal
	last   string
	lastAt time.Time
}

// say writes a line that stays.
func (s *screen) say(format string, args ...any) {
	s.draw(s.drawn, fmt.Sprintf(format, args...))
}

// show brings the picture up to date.
func (s *screen) show(p picture) {
	if s.live {
		lines := append([]string{""}, p.rungs()...)
		if !slices.Equal(lines, s.drawn) {
			s.draw(lines)
		}
		return
	}
	if line := p.line(); line != s.last && s.now().Sub(s.lastAt) >= quietTime {
		s.last, s.lastAt = line, s.now()
		s.write(line + "\n")
	}
}

// leave lets the picture, brought up to date, stay where it is.
func (s *screen) leave(p picture) {
	s.lastAt = time.Time{}
	s.show(p)
	s.drawn = nil
}

// draw replaces the picture by lines that stay with another picture below.
func (s *screen) draw(picture []string, lines ...string) {
	var sb strings.Builder
	if len(s.drawn) > 0 {
		// Up to where the picture begins, and clear what is below.
		fmt.Fprintf(&sb, "\x1b[%dA\r\x1b[J", len(s.drawn))
	}
	for _, line := range lines {
		sb.WriteString(line + "\n")
	}
	for _, line := range picture {
		// A line that wraps would take two, and the way up would be wrong.
		sb.WriteString(cut(line, s.width()-1) + "\n")
	}
	s.drawn = picture
	s.write(sb.String())
}

// write drops its errors: a terminal or a pipe that is gone ends the demo by a signal.
func (s *screen) write(text string) { _, _ = io.WriteString(s.out, text) }

func cut(line string, width int) string {
	if runes := []rune(line); len(runes) > width && width > 0 {
		return string(runes[:width])
	}
	return line
}
