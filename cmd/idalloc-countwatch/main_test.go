package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestDue(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		name  string
		seen  seen
		count string
		due   bool
		left  time.Duration
	}{
		{"the same count", seen{"3", now.Add(-time.Hour)}, "3", false, 0},
		{"another one", seen{"3", now.Add(-time.Hour)}, "5", true, 0},
		{"ten seconds after the last restart", seen{"3", now.Add(-least)}, "5", true, 0},
		{"soon after the last restart", seen{"3", now.Add(-4 * time.Second)}, "5", false, 6 * time.Second},
		{"the clock went back", seen{"3", now.Add(time.Hour)}, "5", false, late + least},
		{"an empty file", seen{"3", now.Add(-time.Hour)}, "", false, 0},
		{"nothing seen yet", seen{"", now.Add(-time.Hour)}, "5", false, 0},
	} {
		if due, left := tc.seen.due(tc.count, now); due != tc.due || left != tc.left {
			t.Errorf("%s: due is %v, and left %v", tc.name, due, left)
		}
	}
}

func TestTheContainersStartAgainAtMostOnceForACount(t *testing.T) {
	for _, tc := range []struct {
		name, file, seen, started, next string
		was, is                         string
	}{
		{name: "the count changed while this container was away", file: "5", seen: "3", was: "3", is: "5"},
		{name: "the count changes", file: "3", seen: "3", next: "5", was: "3", is: "5"},
		{name: "this container alone was restarted, and the others have the old count", file: "5", seen: "3", started: "5", was: "3", is: "5"},
		{name: "the containers were restarted with a later count than the file has", file: "5", seen: "5", started: "7", next: "7", was: "5", is: "7"},
		{name: "the file was empty before the first count", file: "", seen: "3", next: "5", was: "3", is: "5"},
	} {
		dir := newVolume(t, tc.file)
		path := filepath.Join(t.TempDir(), "seen")
		if err := note(path, tc.seen); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		if tc.next != "" {
			publish(t, dir, tc.next)
		}
		was, is, err := watch(filepath.Join(dir, "start-count"), path, tc.started, nil)
		if was != tc.was || is != tc.is || err != nil {
			t.Errorf("%s: from %q to %q, %v", tc.name, was, is, err)
		}
		if text, err := read(path); text != tc.is || err != nil {
			t.Errorf("%s: noted %q, %v", tc.name, text, err)
		}
	}
}

// It says nothing of a count that did not change, and ends when it is told.
func TestTheFirstCountIsNoChange(t *testing.T) {
	for _, tc := range []struct {
		name, file, started, noted string
		waits                      time.Duration
	}{
		{"as it should be", "3", "3", "3", 0},
		{"without the variable", "3", "", "3", 0},
		{"the file is older than the containers, or newer", "3", "5", "5", late},
		{"nothing says it", "", "", "", 0},
	} {
		dir, path, stop := newVolume(t, tc.file), filepath.Join(t.TempDir(), "seen"), make(chan os.Signal, 1)
		stop <- os.Interrupt
		before := time.Now().Add(-time.Millisecond) // a file's time is coarse
		if _, is, err := watch(filepath.Join(dir, "start-count"), path, tc.started, stop); is != "" || err != nil {
			t.Errorf("%s: it ends with %q, %v", tc.name, is, err)
		}
		if tc.noted == "" {
			continue
		}
		seen, err := recall(path, "other", "other")
		if err != nil {
			t.Fatal(err)
		}
		if seen.count != tc.noted {
			t.Errorf("%s: noted %q", tc.name, seen.count)
		}
		// The times are of the files, so the first and the last moment of the call bound them.
		if _, left := seen.due("4", before); left < tc.waits+least {
			t.Errorf("%s: another count is due %s after the begin", tc.name, left)
		}
		if due, left := seen.due("4", time.Now().Add(tc.waits+least)); !due {
			t.Errorf("%s: another count is due only %s later", tc.name, left)
		}
	}
}

// The limit is in bytes. The program runs beside each pod that restarts with the count.
func TestTheBinaryEndsWithTheCodeOfTheRuleAndIsSmall(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("pods run on Linux")
	}
	binary := filepath.Join(t.TempDir(), "idalloc-countwatch")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, ".") //nolint:gosec // the project's own command
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	info, err := os.Stat(binary)
	if err != nil || info.Size() > 3_000_000 {
		t.Errorf("the binary has %d bytes, %v", info.Size(), err)
	}
	dir, path := newVolume(t, "3"), filepath.Join(t.TempDir(), "seen")
	if err := note(path, "3"); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	run := exec.CommandContext(t.Context(), binary, filepath.Join(dir, "start-count"), path) //nolint:gosec // built above
	run.Stderr = &said
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	publish(t, dir, "5")
	var exit *exec.ExitError
	if err := run.Wait(); !errors.As(err, &exit) || exit.ExitCode() != restart || !strings.Contains(said.String(), "from 3 to 5") {
		t.Errorf("it ends with %v and says %q", err, said.String())
	}
}

// newVolume returns a folder as the kubelet makes it: the file is a link into another folder, which a second link names.
func newVolume(t *testing.T, count string) string {
	t.Helper()
	dir := t.TempDir()
	publish(t, dir, count)
	if err := os.Symlink("..data/start-count", filepath.Join(dir, "start-count")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// publish swaps the count as the kubelet does.
func publish(t *testing.T, dir, count string) {
	t.Helper()
	next := filepath.Join(dir, "..of"+count)
	link := filepath.Join(dir, "..data_tmp")
	if err := errors.Join(
		os.Mkdir(next, 0o700), os.WriteFile(filepath.Join(next, "start-count"), []byte(count), 0o600),
		os.Symlink(filepath.Base(next), link), os.Rename(link, filepath.Join(dir, "..data")),
	); err != nil {
		t.Fatal(err)
	}
}
