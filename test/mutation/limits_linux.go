package main

import (
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// group puts the command's processes into a group of their own, which ends with it.
func group(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
}

// limit bounds what a process uses: processor time, and memory, which an endless loop may eat first.
func limit(pid int, processor time.Duration) error {
	const memory = 3 << 30
	seconds := uint64(processor/time.Second) + 1 //nolint:gosec // it is not negative
	if err := unix.Prlimit(pid, unix.RLIMIT_CPU, &unix.Rlimit{Cur: seconds, Max: seconds}, nil); err != nil {
		return ignoreGone(err)
	}
	return ignoreGone(unix.Prlimit(pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: memory, Max: memory}, nil))
}

func ignoreGone(err error) error {
	if err == unix.ESRCH { //nolint:errorlint // it is a number
		return nil
	}
	return err
}
