package boottime

import (
	"os"
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

// Wait blocks until the clock shows at least until, or done is closed. If the machine is suspended at that time, Wait returns when the machine resumes.
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
