package process_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/idalloc/idalloc/test/envtest/process"
)

// childEnv makes this test binary play the program that is killed.
const childEnv = "IDALLOC_TEST_PROCESS_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		parent()
		return
	}
	os.Exit(m.Run())
}

// guarded is what parent says when its group is complete.
const guarded = "guarded"

// parent starts a shell with a grandchild, prints both PIDs and guarded, and waits to be killed.
func parent() {
	group, err := process.NewGroup()
	if err != nil {
		panic(err)
	}
	cmd := exec.CommandContext(context.Background(), "/bin/sh", "-c", "sleep 1000 & echo $$ $!; wait")
	cmd.Stdout = os.Stdout
	if _, err := group.Start(cmd); err != nil {
		panic(err)
	}
	_, _ = fmt.Fprintln(os.Stdout, guarded) // until then a child's child may outlive this process
	select {}
}

func TestNothingOutlivesAKilledParent(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this test
	cmd.Env = append(os.Environ(), childEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The children's line and this process's come in any order.
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	second, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pids := strings.Replace(first+second, guarded, "", 1)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed

	for field := range strings.FieldsSeq(pids) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		eventuallyGone(t, pid)
	}
}

// eventuallyGone polls, because orphans are reaped by another process.
func eventuallyGone(t *testing.T, pid int) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for alive(pid) {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("process %d is still there", pid)
		}
	}
}

// alive is false for a zombie: init may not have reaped an orphan yet.
func alive(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	if pid < 0 {
		return groupRuns(-pid)
	}
	return state(strconv.Itoa(pid)) != "Z"
}

func groupRuns(group int) bool {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		pgid, err := syscall.Getpgid(pid)
		if err == nil && pgid == group && state(entry.Name()) != "Z" {
			return true
		}
	}
	return false
}

func state(pid string) string {
	stat, err := os.ReadFile("/proc/" + pid + "/stat") //nolint:gosec // a number
	if err != nil {
		return "Z"
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return after[:1]
}
