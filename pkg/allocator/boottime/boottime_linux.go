package boottime

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the time since the machine was booted, including the time that it was suspended.
func Now() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("idalloc: the boot time clock cannot be read: " + err.Error()) // Linux has had it since 2.6.39
	}
	return time.Duration(ts.Nano())
}

// Boot identifies the boot that Now counts from. Two readings of Now can be compared if their Boot is the same and not
// empty. It is empty if the boot cannot be identified.
func Boot() string { return bootOf("/proc") }

// bootOf is Boot for a proc file system that is mounted there.
func bootOf(proc string) string {
	boot, err := os.ReadFile(filepath.Join(proc, "sys", "kernel", "random", "boot_id")) //nolint:gosec // a path of the kernel's
	if err != nil || len(bytes.TrimSpace(boot)) == 0 {
		return ""
	}
	// A time namespace has an offset of its own. Kernels without time namespaces have no such link.
	namespace, err := os.Readlink(filepath.Join(proc, "self", "ns", "time"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return string(bytes.TrimSpace(boot)) + " " + namespace
}

// Wait blocks until the clock shows at least until, or done is closed. If the machine is suspended at that time, Wait returns
// when it resumes.
func Wait(until time.Duration, done <-chan struct{}) {
	timer, err := newTimer(until)
	if err != nil {
		wait(until, done)
		return
	}
	fired := make(chan struct{})
	go func() {
		defer close(fired)
		_, _ = timer.Read(make([]byte, 8)) // returns when the timer fires or is closed
	}()
	select {
	case <-fired:
	case <-done:
	}
	_ = timer.Close()
	<-fired
}

func newTimer(until time.Duration) (*os.File, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(1, until.Nanoseconds()))}
	if err := unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME, &spec, nil); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "timerfd"), nil
}
