//go:build linux

package child

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
)

// actEnv is a variable that makes the test binary act as a command.
const actEnv = "CHILD_TEST_ACT"

func TestMain(m *testing.M) {
	if act := os.Getenv(actEnv); act != "" {
		os.Exit(play(act, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// play acts as a command. It reports to the pipe that the first argument names.
func play(act string, args []string) int {
	report, err := os.OpenFile(args[0], os.O_WRONLY, 0) //nolint:gosec // the test's own pipe
	if err != nil {
		return 99
	}
	say := func(format string, values ...any) { _, _ = fmt.Fprintf(report, format+"\n", values...) }
	signals := make(chan os.Signal, 10)
	if act != "signals" {
		signal.Notify(signals, syscall.SIGTERM) // before it reports anything
	}
	switch act {
	case "exit":
		code, _ := strconv.Atoi(args[1])
		return code
	case "echo":
		say("%s %s %s %s", strings.Join(args[1:], " "), os.Getenv("IDALLOC_ID"), os.Getenv("IDALLOC_COUNT"), os.Getenv("IDALLOC_TOKEN"))
		<-signals
		say("stopped")
		return 0
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		say("ready")
		select {}
	case "signals":
		signal.Notify(signals, syscall.SIGUSR1, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT)
		say("ready")
		for s := range signals {
			say("%s", s)
			if s == syscall.SIGTERM || s == syscall.SIGINT {
				return 5
			}
		}
	case "parent": // leaves processes in sessions of their own behind, two generations deep
		for _, next := range []string{"daemon", "parent-of-daemon"} {
			spawn(next, args[0])
		}
		<-signals
		return 0
	case "parent-of-joiner": // its child moves into the group of the process that started it
		group, _ := syscall.Getpgid(os.Getppid())
		begin(exec.CommandContext(context.Background(), os.Args[0], args[0], strconv.Itoa(group)), "joiner") //nolint:gosec // this binary
		<-signals
		return 0
	case "parent-of-daemon":
		spawn("daemon", args[0])
		signal.Ignore(syscall.SIGTERM)
		select {}
	case "joiner": // moves into the process group that is named, if it can
		group, _ := strconv.Atoi(args[1])
		_ = syscall.Setpgid(0, group)
		fallthrough
	case "daemon":
		signal.Ignore(syscall.SIGTERM)
		say("daemon %d", os.Getpid())
		select {}
	case "orphaner": // its child ends as an orphan while it runs on
		spawn("middle", args[0])
		<-signals
		return 0
	case "middle": // its parent does not wait for it, its child is adopted
		spawn("short", args[0])
		return 0
	case "short":
		for os.Getppid() == parentOf(args[1:]) { // it ends at once
			runtime.Gosched()
		}
		say("orphan %d", os.Getpid())
		return 0
	}
	return 98
}

func parentOf(args []string) int {
	pid, _ := strconv.Atoi(args[0])
	return pid
}

// spawn starts the next part in a session of its own.
func spawn(act, report string) {
	cmd := exec.CommandContext(context.Background(), os.Args[0], report, strconv.Itoa(os.Getpid())) //nolint:gosec // this binary
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	begin(cmd, act)
}

func begin(cmd *exec.Cmd, act string) {
	cmd.Env = append(os.Environ(), actEnv+"="+act)
	if err := cmd.Start(); err != nil {
		panic(err)
	}
}

// stage has a Runner, and the pipe to which its commands report.
type stage struct {
	*Runner
	t      *testing.T
	pipe   string
	report *bufio.Scanner
}

func newStage(t *testing.T) *stage {
	t.Helper()
	r, err := NewRunner()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	pipe := t.TempDir() + "/report"
	must(t, syscall.Mkfifo(pipe, 0o600))
	f, err := os.OpenFile(pipe, os.O_RDWR, 0) //nolint:gosec // open for writing too: no end of file between commands
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return &stage{Runner: r, t: t, pipe: pipe, report: bufio.NewScanner(f)}
}

func (s *stage) environ(act string) []string {
	return append(os.Environ(), actEnv+"="+act, "GORACE=atexit_sleep_ms=0")
}

func (s *stage) play(act string, args ...string) *Process {
	s.t.Helper()
	p, err := s.Start(Command{Args: append([]string{os.Args[0], s.pipe}, args...), Env: s.environ(act)})
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

func (s *stage) says() string {
	s.t.Helper()
	if !s.report.Scan() {
		s.t.Fatal(s.report.Err(), io.EOF)
	}
	return s.report.Text()
}

func (s *stage) follower(act string, change func(*Options), args ...string) *Follower {
	o := Options{
		Runner: s.Runner, Command: append([]string{os.Args[0], s.pipe}, args...), Environ: s.environ(act),
		StopTimeout: time.Minute, Log: testr.New(s.t),
	}
	if change != nil {
		change(&o)
	}
	return NewFollower(o)
}

// must fails the test at the first error.
func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
