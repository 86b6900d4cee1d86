package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// Memory has settled when it has stayed within 1 % for this many looks in a row.
	settledLooks = 50
	tolerance    = 0.01
)

// memory is what /proc/PID/status says, in KiB.
type memory struct {
	resident, peak  int
	anonymous, file int
}

func (m memory) String() string {
	const kib = 1024.0
	return fmt.Sprintf("%.1f MiB resident (%.1f of its own, %.1f of files such as the program), %.1f at most, steady for %s",
		float64(m.resident)/kib, float64(m.anonymous)/kib, float64(m.file)/kib, float64(m.peak)/kib, settledLooks*poll)
}

// settledMemory returns a process's memory when it has stopped changing.
func settledMemory(ctx context.Context, pid int) (m memory, err error) {
	steady, from := 0, 0
	err = wait.PollUntilContextCancel(ctx, poll, true, func(context.Context) (bool, error) {
		if m, err = readMemory(pid); err != nil {
			return false, err
		}
		if change := float64(m.resident - from); max(change, -change) > tolerance*float64(from) {
			steady, from = 0, m.resident
		}
		steady++
		return steady > settledLooks, nil
	})
	return m, err
}

func readMemory(pid int) (m memory, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return m, err
	}
	fields := map[string]*int{"VmRSS": &m.resident, "VmHWM": &m.peak, "RssAnon": &m.anonymous, "RssFile": &m.file}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		if field := fields[name]; field != nil {
			if _, err := fmt.Sscanf(value, "%d kB", field); err != nil {
				return m, fmt.Errorf("/proc/%d/status: %s: %w", pid, name, err)
			}
		}
	}
	return m, nil
}

// ownCPU returns the CPU time that this process has taken.
func ownCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0 // it fails for nothing but a wrong argument
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
