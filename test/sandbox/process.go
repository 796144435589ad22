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
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process names one process for as long as the machine runs: a pid is used again,
// a pid with its start time is not.
type Process struct {
	PID     int    `json:"pid"`
	Started string `json:"started"`
}

// FindProcess returns the process that has pid now. A zombie counts as gone: a
// container's first process may never collect it.
func FindProcess(pid int) (Process, bool) {
	started, ok := startTime(pid)
	return Process{PID: pid, Started: started}, ok
}

// Alive reports whether this very process still runs.
func (p Process) Alive() bool {
	if p.PID <= 0 {
		return false
	}
	now, ok := FindProcess(p.PID)
	return ok && now == p
}

// EndGroup asks the process group that p leads to end, and kills it when it has not
// within grace. A process that is gone, or whose pid is another's now, is left alone.
func (p Process) EndGroup(ctx context.Context, grace time.Duration) error {
	if err := p.signalGroup(syscall.SIGTERM); err != nil {
		return err
	}
	waitCtx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if p.waitGone(waitCtx) == nil {
		return nil
	}
	return p.KillGroup(ctx)
}

// KillGroup kills the process group that p leads and waits until p is gone.
func (p Process) KillGroup(ctx context.Context) error {
	if err := p.signalGroup(syscall.SIGKILL); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := p.waitGone(ctx); err != nil {
		return fmt.Errorf("wait for the end of process %d: %w", p.PID, err)
	}
	return nil
}

func (p Process) signalGroup(s syscall.Signal) error {
	if !p.Alive() {
		return nil
	}
	if err := syscall.Kill(-p.PID, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal process group %d: %w", p.PID, err)
	}
	return nil
}

func (p Process) waitGone(ctx context.Context) error {
	return Poll(ctx, 50*time.Millisecond, func() (bool, error) { return !p.Alive(), nil })
}

// StartDetached starts cmd as the leader of a session of its own, so that it outlives
// the caller and no terminal's Ctrl-C reaches it.
func StartDetached(cmd *exec.Cmd) (Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	if err := cmd.Start(); err != nil {
		return Process{}, fmt.Errorf("start %s: %w", cmd.Args[0], err)
	}
	p, ok := FindProcess(cmd.Process.Pid)
	go func() { _ = cmd.Wait() }() // collects it, so that it does not stay a zombie
	if !ok {
		return Process{}, fmt.Errorf("start %s: it ended at once", cmd.Args[0])
	}
	return p, nil
}

// startTime is field 22 of /proc/PID/stat; where there is no /proc, ps tells.
func startTime(pid int) (string, bool) {
	if !isDir("/proc/self") {
		return startTimeByPS(pid)
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", false
	}
	return parseStat(string(stat))
}

// parseStat reads the start time of a process that is no zombie.
func parseStat(stat string) (string, bool) {
	// The second field, the program's name, may hold blanks and brackets itself.
	end := strings.LastIndexByte(stat, ')')
	if end < 0 {
		return "", false
	}
	fields := strings.Fields(stat[end+1:])
	const state, start = 0, 19 // the third and the twenty-second of proc(5)
	if len(fields) <= start || fields[state] == "Z" || fields[state] == "X" {
		return "", false
	}
	return fields[start], true
}

func startTimeByPS(pid int) (string, bool) {
	out, err := exec.Command("ps", "-o", "state=,lstart=", "-p", strconv.Itoa(pid)).Output()
	state, started, ok := strings.Cut(string(bytes.TrimSpace(out)), " ")
	if err != nil || !ok || strings.HasPrefix(state, "Z") {
		return "", false
	}
	return strings.TrimSpace(started), true
}
