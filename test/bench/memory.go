package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// Memory has settled when it has stayed within 1 % for this many looks in a row.
	settledLooks = 50
	tolerance    = 0.01
	kib          = 1024 // in a MiB
)

// memory is what /proc/PID/status says, in KiB.
type memory struct{ resident, peak, anonymous float64 }

// settledMemory returns a process's memory when it has stopped changing.
func settledMemory(ctx context.Context, pid int) (m memory, err error) {
	steady, from := 0, 0.0
	err = wait.PollUntilContextCancel(ctx, poll, true, func(context.Context) (bool, error) {
		if m, err = readMemory(pid); err != nil {
			return false, err
		}
		if math.Abs(m.resident-from) > tolerance*from {
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
	fields := map[string]*float64{"VmRSS": &m.resident, "VmHWM": &m.peak, "RssAnon": &m.anonymous}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		if field := fields[name]; field != nil {
			if _, err := fmt.Sscanf(value, "%g kB", field); err != nil {
				return m, fmt.Errorf("/proc/%d/status: %s: %w", pid, name, err)
			}
		}
	}
	return m, nil
}
