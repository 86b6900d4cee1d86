//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/idalloc/idalloc/internal/inspect"
)

// terminal returns both ends of a terminal: what a person sees, and what the program writes to.
func terminal(t *testing.T, columns, rows uint16) (seen, written *os.File) {
	t.Helper()
	seen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(seen.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	if written, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = written.Close()
		_ = seen.Close()
	})
	if err := unix.IoctlSetWinsize(int(written.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}); err != nil {
		t.Fatal(err)
	}
	return seen, written
}

// end is how screen ends a frame.
const end = "\x1b[J\x1b[?7h"

// drawn is what a terminal shows after what was written to it. It knows what screen uses.
func drawn(t *testing.T, rows []string, written string) []string {
	t.Helper()
	at := 0
	rest, cleared := strings.CutSuffix(written, end)
	rest, home := strings.CutPrefix(rest, "\x1b[?7l\x1b[H")
	if !cleared || !home {
		t.Fatalf("%q", written)
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(rest, "\r\n"), "\r\n") {
		text, whole := strings.CutSuffix(line, "\x1b[K")
		if !whole || strings.Contains(text, "\x1b") {
			t.Fatalf("what stood behind %q stays", line)
		}
		rows = slices.Concat(rows[:min(at, len(rows))], []string{text}, rows[min(at+1, len(rows)):])
		at++
	}
	return rows[:at]
}

func TestTopFillsATerminalAndNoMore(t *testing.T) {
	const height = 6
	seen, written := terminal(t, 60, height)
	show := screen(written)
	one := scene{ref: ref(), slots: shown()}
	one.slots.Waiting = []string{"c", "d"}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var rows []string
	look := func() {
		t.Helper()
		if err := show(at, []scene{one}); err != nil {
			t.Fatal(err)
		}
		var frame []byte
		for !bytes.HasSuffix(frame, []byte(end)) { // a terminal gives in parts what was written at once
			part := make([]byte, 4096)
			n, err := seen.Read(part)
			if err != nil {
				t.Fatal(err)
			}
			frame = append(frame, part[:n]...)
		}
		rows = drawn(t, rows, string(frame))
	}
	look()
	if len(rows) != height-1 || rows[2] != "deployment.apps/worker in shop: held 1/2, waiting 2, changing 0, dead 0" || rows[3] != "waiting: c, d" {
		t.Errorf("it shows\n%s", strings.Join(rows, "\n"))
	}
	one.slots = inspect.View{}
	look()
	if len(rows) != 3 || strings.Contains(strings.Join(rows, ""), "waiting: ") {
		t.Errorf("less to see leaves\n%s", strings.Join(rows, "\n"))
	}
}
