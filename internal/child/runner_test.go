//go:build linux

package child

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/boottime"
)

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestExitCodeIsTheCommands(t *testing.T) {
	s := newStage(t)
	for _, code := range []string{"0", "7", "255"} {
		p := s.play("exit", code)
		<-p.Done()
		if got := strconv.Itoa(p.Code()); got != code || p.Killed() {
			t.Errorf("code %s, killed %t; want %s", got, p.Killed(), code)
		}
	}
}

func TestKilledBySignalIs128AndMore(t *testing.T) {
	s := newStage(t)
	p := s.play("stubborn")
	s.says()
	p.Signal(syscall.SIGKILL)
	<-p.Done()
	if p.Code() != 137 {
		t.Errorf("code %d, want 137", p.Code())
	}
}

func TestSignalsReachTheCommand(t *testing.T) {
	s := newStage(t)
	p := s.play("signals")
	s.says()
	p.Signal(syscall.SIGUSR1)
	if got := s.says(); got != syscall.SIGUSR1.String() {
		t.Errorf("it got %q", got)
	}
	must(t, p.Stop(t.Context(), time.Minute))
	if p.Code() != 5 || p.Killed() {
		t.Errorf("code %d, killed %t", p.Code(), p.Killed())
	}
}

func TestIgnoringSIGTERMDoesNotHelp(t *testing.T) {
	s := newStage(t)
	p := s.play("stubborn")
	s.says()
	must(t, p.Stop(t.Context(), 10*time.Millisecond))
	if p.Code() != 137 || !p.Killed() || !gone(p.Pid()) {
		t.Errorf("code %d, killed %t, gone %t", p.Code(), p.Killed(), gone(p.Pid()))
	}
}

func TestStopEndsWithItsContext(t *testing.T) {
	s := newStage(t)
	p := s.play("stubborn")
	s.says()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Stop(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("Stop returned %v while the command runs", err)
	}
	p.KillAt(boottime.Now()) // an earlier moment than Stop's
	<-p.Done()
}

func TestDaemonsAreGoneAfterStop(t *testing.T) {
	s := newStage(t)
	p := s.play("parent")
	daemons := make([]int, 0, 2)
	for range 2 {
		pid, err := strconv.Atoi(strings.TrimPrefix(s.says(), "daemon "))
		if err != nil {
			t.Fatal(err)
		}
		daemons = append(daemons, pid)
	}
	must(t, p.Stop(t.Context(), time.Minute))
	for _, pid := range daemons {
		if !gone(pid) {
			t.Errorf("daemon %d outlived the command", pid)
		}
	}
	if p.Code() != 0 || p.Killed() || p.Leftovers() != 3 {
		t.Errorf("code %d, killed %t, leftovers %d", p.Code(), p.Killed(), p.Leftovers())
	}
}

// What is in this process's own group counts as this process's, and not as the command's.
func TestNothingOfTheCommandGetsIntoTheGroupOfThisProcess(t *testing.T) {
	s := newStage(t)
	p := s.play("parent-of-joiner")
	pid, err := strconv.Atoi(strings.TrimPrefix(s.says(), "daemon "))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := p.Stop(ctx, time.Minute); err != nil || !gone(pid) || p.Leftovers() != 1 {
		t.Errorf("%v, gone %t, leftovers %d", err, gone(pid), p.Leftovers())
	}
}

func TestOrphansAreReapedWhileTheCommandRuns(t *testing.T) {
	s := newStage(t)
	p := s.play("orphaner")
	pid, err := strconv.Atoi(strings.TrimPrefix(s.says(), "orphan "))
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for !gone(pid) { // a zombie is not gone
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("the orphan is a zombie")
		}
	}
	if p.ended() {
		t.Error("the command has ended")
	}
	if err := p.Stop(t.Context(), time.Minute); err != nil || p.Leftovers() != 0 {
		t.Errorf("%v, leftovers %d", err, p.Leftovers())
	}
}

func TestPackageExecKeepsItsChildren(t *testing.T) {
	s := newStage(t)
	p := s.play("stubborn")
	s.says()
	for range 20 {
		if err := exec.CommandContext(t.Context(), "/bin/true").Run(); err != nil {
			t.Fatalf("a child of package os/exec was reaped elsewhere: %v", err)
		}
	}
	must(t, p.Stop(t.Context(), 0))
}

func TestOneAtATime(t *testing.T) {
	s := newStage(t)
	p := s.play("stubborn")
	s.says()
	if _, err := s.Start(Command{Args: []string{"/bin/true"}}); !errors.Is(err, ErrBusy) {
		t.Errorf("a second command: %v", err)
	}
	_ = p.Stop(t.Context(), 0)
	p = s.play("exit", "0")
	<-p.Done()
}

func TestWhatCannotBeStarted(t *testing.T) {
	s := newStage(t)
	dir := t.TempDir()
	files := map[string]struct {
		content string
		mode    os.FileMode
	}{
		"plain":       {"#!/bin/sh\n", 0o600},
		"garbage":     {"\x01\x02\x03", 0o700},
		"interpreter": {"#!/no/such/interpreter\n", 0o700},
	}
	for name, f := range files {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(f.content), f.mode))
	}
	for name, want := range map[string]int{
		"no-such-command-anywhere": 127, dir + "/none": 127, dir + "/interpreter": 127,
		dir + "/plain": 126, dir + "/garbage": 126, dir: 126,
	} {
		_, err := s.Start(Command{Args: []string{name}})
		var failed *StartError
		if !errors.As(err, &failed) || failed.Code != want || !strings.Contains(err.Error(), strconv.Quote(name)) {
			t.Errorf("%s: %v, want code %d", name, err, want)
		}
	}
}

func TestStatWithAnOddName(t *testing.T) {
	c, parent, ok := parseStat(42, []byte("42 (a) S 1 (b) Z 7 9 9 0 -1"))
	if !ok || parent != 7 || c.group != 9 || !c.zombie {
		t.Errorf("%+v, parent %d, %t", c, parent, ok)
	}
	if _, _, ok := parseStat(42, []byte("42 (a")); ok {
		t.Error("half a line is a process")
	}
}
