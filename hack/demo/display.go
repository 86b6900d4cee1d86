package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	hideCursor, showCursor = "\x1b[?25l", "\x1b[?25h"
	cutLines, wrapLines    = "\x1b[?7l", "\x1b[?7h"
	clearLine, clearBelow  = "\x1b[K", "\x1b[J"
	reset                  = "\x1b[0m"
	bold, dim              = "\x1b[1m", "\x1b[2m"
	green, yellow, cyan    = "\x1b[32m", "\x1b[33m", "\x1b[36m"
	columns                = "  %2s  %-24s  %-11s  %-13s %s"
	tick                   = "✓"
	gone                   = "pod gone" // the state of a slot whose pod does not exist any more
)

// display shows the demo. What is said scrolls up as usual. Below it a terminal has a table that is drawn again and again in its
// place; elsewhere each row that changed is a line.
type display struct {
	out               io.Writer
	terminal, colours bool
	clock             time.Time      // lines count their time from here
	printed           map[string]row // the last line of each pod
	height            int            // of the table that is on the screen now
}

// newDisplay returns what suits the output.
func newDisplay(out *os.File, plain bool) *display {
	d := &display{out: out, clock: time.Now(), printed: map[string]row{}}
	if _, err := unix.IoctlGetWinsize(int(out.Fd()), unix.TIOCGWINSZ); err == nil && !plain && os.Getenv("TERM") != "dumb" {
		d.terminal, d.colours = true, os.Getenv("NO_COLOR") == ""
		d.write(hideCursor)
	}
	return d
}

// close gives the cursor back.
func (d *display) close() {
	if d.terminal {
		d.write(showCursor)
	}
}

func (d *display) write(text string) { _, _ = io.WriteString(d.out, text) }

// say prints lines for good, in place of the table.
func (d *display) say(lines ...string) {
	d.replace(lines)
	d.height = 0
}

// draw shows the table, and below it how far it is.
func (d *display) draw(f frame, status string) {
	if !d.terminal {
		if lines := d.changes(f); len(lines) > 0 {
			d.say(lines...)
		}
		return
	}
	table := []string{"", d.paint(dim, fmt.Sprintf(columns, "ID", "POD", "STATE", "THE POD SAYS", "CHANGE"))}
	for _, r := range f.rows {
		table = append(table, d.paint(r.style, fmt.Sprintf(columns, r.id, r.pod, r.state, r.says, r.note)))
	}
	table[0] = cutLines // a line that is too long must not take two
	d.replace(append(table, "", status+wrapLines))
}

// changes are the lines of what is different from what was printed last.
func (d *display) changes(f frame) (lines []string) {
	add := func(r row) {
		line := fmt.Sprintf("  %5.1fs  id %-2s %-24s %-12s %-12s %s", time.Since(d.clock).Seconds(), r.id, r.pod, r.state, r.says, r.note)
		lines = append(lines, strings.TrimRight(line, " "))
	}
	for _, r := range f.rows {
		last := d.printed[r.pod]
		if f.pods[r.pod] == nil || r.id == last.id && r.state == last.state && r.says == last.says {
			continue
		}
		d.printed[r.pod] = r
		add(r)
	}
	for _, pod := range slices.Sorted(maps.Keys(d.printed)) {
		if f.pods[pod] == nil {
			add(row{id: d.printed[pod].id, pod: pod, state: gone})
			delete(d.printed, pod)
		}
	}
	return lines
}

// replace puts lines where the table was; they are the table from now on.
func (d *display) replace(lines []string) {
	if !d.terminal {
		d.write(strings.Join(lines, "\n") + "\n")
		return
	}
	text := strings.Join(lines, clearLine+"\n") + clearLine + "\n" + clearBelow
	if d.height > 0 {
		text = fmt.Sprintf("\x1b[%dA\r", d.height) + text
	}
	d.write(strings.ReplaceAll(text, tick, d.paint(green, tick)))
	d.height = len(lines)
}

func (d *display) paint(style, text string) string {
	if !d.colours || style == "" {
		return text
	}
	return style + text + reset
}
