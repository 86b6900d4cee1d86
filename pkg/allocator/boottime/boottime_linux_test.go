package boottime

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A process that may open no more files waits all the same.
func TestWaitWithoutAFreeFileDescriptor(t *testing.T) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	until := Now() + 20*time.Millisecond
	Wait(until, nil)
	now := Now()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if now < until {
		t.Errorf("it ended %s early", until-now)
	}
}
