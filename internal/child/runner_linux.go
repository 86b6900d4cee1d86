package child

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// adopt makes this process the parent of its children's orphans. In a container, PID 1 is their parent anyway.
func adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("this process cannot adopt what the command leaves behind (prctl): %w", err)
	}
	if _, err := os.ReadFile("/proc/self/stat"); err != nil {
		// Error: exit code 1: `run` needs `/proc`.
		// Do: mount it.
		return fmt.Errorf("processes that the command leaves behind cannot be found: mount /proc: %w", err)
	}
	return nil
}

// attributes returns the attributes of a new process. The command must die with this process, even if this process is killed, because the next process in the
// pod may take the same id. Its group gets a session of its own: a process can move into any group of its session, so otherwise a child of the command could
// hide in this process's group.
func attributes(group bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: group, Pdeathsig: syscall.SIGKILL}
}

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}

// clearLeftovers reaps the adopted processes that have ended. If the command p has ended, it also kills the processes that the command left behind. Their
// children are adopted when they die; the next call kills those. p may be nil. none is true if this process has no more children.
//
// It does not touch processes that package os/exec started, such as a kubeconfig's credential plugin. They are in this process's own group. In a terminal the
// command is also in that group; then everything in the group counts as the command's.
func clearLeftovers(p *Process) (none bool) {
	over := p != nil && p.ended()
	own := unix.Getpgrp()
	for _, c := range children() {
		if p != nil && c.pid == p.pid && !over {
			continue // Process.reap reaps the command itself
		}
		if c.group == own && (!over || p.group) {
			continue
		}
		if c.zombie {
			if got, _ := wait(c.pid, nil); got != 0 {
				continue
			} // only the first thread of the process has ended
		}
		if over {
			p.left[c.pid] = true
			_ = syscall.Kill(c.pid, syscall.SIGKILL) // this child was not reaped, so no other process has its pid
		}
	}
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return errors.Is(err, unix.ECHILD)
}

type process struct {
	pid, group int
	zombie     bool
}

// children returns the children of this process. It may miss one that is born during the call.
func children() []process {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = proc.Close() }()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return nil
	}
	me := os.Getpid()
	var found []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat") //nolint:gosec // a number, in /proc
		if err != nil {
			continue // the process has ended
		}
		if c, parent, ok := parseStat(pid, stat); ok && parent == me {
			found = append(found, c)
		}
	}
	return found
}

// parseStat reads /proc/PID/stat: "PID (NAME) STATE PPID PGRP ...". The name may contain anything.
func parseStat(pid int, stat []byte) (c process, parent int, ok bool) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 3 {
		return process{}, 0, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return process{}, 0, false
	}
	group, err := strconv.Atoi(string(fields[2]))
	if err != nil {
		return process{}, 0, false
	}
	return process{pid: pid, group: group, zombie: string(fields[0]) == "Z"}, parent, true
}

// realtime returns the real-time signals that the C library leaves to programs.
func realtime() []os.Signal {
	const first, last = 35, 64
	signals := make([]os.Signal, 0, last-first+1)
	for n := first; n <= last; n++ {
		signals = append(signals, syscall.Signal(n))
	}
	return signals
}
