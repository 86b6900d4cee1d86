//go:build linux

package child

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/idalloc/idalloc/pkg/allocator/boottime"
	"github.com/idalloc/idalloc/pkg/placement"
)

// A process that was suspended finds out that the deadline has passed when it is about to start the command.
func TestNoCommandStartsUnderAnIDWhoseDeadlineHasPassed(t *testing.T) {
	s := newStage(t)
	var over atomic.Bool
	f := s.follower("echo", func(o *Options) { o.Fenced = over.Load })
	over.Store(true)
	f.Publish(assigned(0, 3, 7))
	if _, ok := f.begin(t.Context()); ok {
		t.Fatal("a command begins under an id that is fenced")
	}
	must(t, f.Stopped(t.Context()))
	done := f.going(t.Context())
	over.Store(false)
	f.Publish(assigned(0, 3, 9))
	expect(t, s, " 0 3 9")
	f.Signal(syscall.SIGTERM)
	expect(t, s, "stopped")
	<-done
}

func TestTheEarliestDeadlineCounts(t *testing.T) {
	s := newStage(t)
	p := s.play("stubborn")
	s.says()
	p.KillAt(boottime.Now() + 10*time.Millisecond)
	p.KillAt(boottime.Now() + time.Hour)
	<-p.Done()
	if p.Code() != 137 || !p.Killed() {
		t.Errorf("code %d, killed %t", p.Code(), p.Killed())
	}
	p.KillAt(boottime.Now()) // another process may have its number
	p.Signal(syscall.SIGKILL)
}

// The deadline of one id says nothing about the next.
func TestACommandHasItsWholeStopTimeoutAfterAFence(t *testing.T) {
	s := newStage(t)
	f := s.follower("echo", nil)
	done := f.going(t.Context())
	f.Publish(assigned(0, 3, 7))
	expect(t, s, " 0 3 7")
	f.Fence(boottime.Now() + time.Hour) // it stops by itself before that
	expect(t, s, "stopped")
	f.Publish(without("fenced"))
	f.Fence(0) // and again, although no command runs
	f.Publish(assigned(0, 3, 9))
	expect(t, s, " 0 3 9")
	f.Publish(assigned(1, 3, 11))
	expect(t, s, "stopped", " 1 3 11")
	f.Signal(syscall.SIGTERM)
	expect(t, s, "stopped")
	if got := <-done; got.code != 0 || got.err != nil {
		t.Errorf("Run returned %+v", got)
	}
}

// What is killed with its runner must not outlive it, or the next process of the pod would have a second command beside its own.
func TestCloseKillsWhatRuns(t *testing.T) {
	r, err := NewRunner()
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.Start(Command{Args: []string{"/bin/sleep", "3600"}, Env: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(p.Pid(), &status, 0, nil); err != nil || status.Signal() != syscall.SIGKILL {
		t.Errorf("%v, signal %s", err, status.Signal())
	}
	if _, err := r.Start(Command{Args: []string{"/bin/sleep", "3600"}}); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// A kubeconfig's credential plugin is started with package os/exec, which waits for it.
func TestWhatPackageExecStartedIsLeftToIt(t *testing.T) {
	env := &syscall.ProcAttr{Env: os.Environ()}
	over, err := syscall.ForkExec("/bin/true", []string{"true"}, env) //nolint:gosec // a program of the system
	if err != nil {
		t.Fatal(err)
	}
	must(t, unix.Waitid(unix.P_PID, over, nil, unix.WEXITED|unix.WNOWAIT, nil))
	running, err := syscall.ForkExec("/bin/sleep", []string{"sleep", "3600"}, env) //nolint:gosec // a program of the system
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*Process{nil, {pid: -1, group: true, left: map[int]bool{}}, {pid: -1, group: true, reaped: true, left: map[int]bool{}}} {
		if none := clearLeftovers(p); none || (p != nil && len(p.left) > 0) {
			t.Errorf("with the command %+v: no child is left: %t", p, none)
		}
	}
	if _, err := syscall.Wait4(over, nil, 0, nil); err != nil {
		t.Errorf("a process that had ended was reaped elsewhere: %v", err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(running, &status, syscall.WNOHANG, nil); err != nil || status.Signaled() {
		t.Errorf("a process that runs was killed: %v", err)
	}
	must(t, syscall.Kill(running, syscall.SIGTERM))
	if _, err := syscall.Wait4(running, &status, 0, nil); err != nil || status.Signal() != syscall.SIGTERM {
		t.Errorf("%v, signal %s", err, status.Signal())
	}
}

// Without a handler for the signal a command would die of it, and before it has begun to read, it needs none.
func TestNoSignalForPartitionsThatAreTheSame(t *testing.T) {
	s := newStage(t)
	f := s.follower("signals", on(SignalOnPartitions))
	done := f.going(t.Context())
	move(f, sharing(placement.Of(0), 7))
	expect(t, s, "ready")
	same := sharing(placement.Of(0), 7)
	same.Partitions.Stop = 5
	move(f, same)
	f.awaitProcess()
	f.Signal(syscall.SIGUSR1) // the next that it hears of
	expect(t, s, syscall.SIGUSR1.String())
	f.Signal(syscall.SIGTERM)
	expect(t, s, syscall.SIGTERM.String())
	<-done
}
