package program

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// Memory has settled when it has stayed within 1 % for this many looks in a row, which are poll apart.
	settledLooks = 50
	tolerance    = 0.01
	poll         = 100 * time.Millisecond
)

// Memory is what /proc/PID/status says, in KiB.
type Memory struct{ Resident, Peak, Anonymous float64 }

// ReadMemory returns the memory of a process.
func ReadMemory(pid int) (m Memory, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return m, err
	}
	fields := map[string]*float64{"VmRSS": &m.Resident, "VmHWM": &m.Peak, "RssAnon": &m.Anonymous}
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

// SettledMemory returns the memory of a process once it has stopped changing.
func SettledMemory(ctx context.Context, pid int) (m Memory, err error) {
	steady, from := 0, 0.0
	err = wait.PollUntilContextCancel(ctx, poll, true, func(context.Context) (bool, error) {
		if m, err = ReadMemory(pid); err != nil {
			return false, err
		}
		if math.Abs(m.Resident-from) > tolerance*from {
			steady, from = 0, m.Resident
		}
		steady++
		return steady > settledLooks, nil
	})
	return m, err
}
