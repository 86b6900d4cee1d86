package program

import (
	"fmt"
	"os"
	"strings"
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
