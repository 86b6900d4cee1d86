package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

const (
	// refresh is how often the table is drawn.
	refresh      = 100 * time.Millisecond
	defaultWidth = 100
	maxWidth     = 120
	tick         = "✓"
)

// scene is what is said about a phase before it begins.
type scene struct {
	number, of    int
	title         string
	command, look string
}

// display shows the demo. Its methods may be called at once from several goroutines.
type display interface {
	// say prints lines for good.
	say(lines ...string)
	// progress says what is being done while there is no table yet; empty: nothing.
	progress(what string)
	// begin introduces a phase, end closes it with what happened.
	begin(scene)
	end(result string)
	// clock starts the phase's clock; fold takes its table away and leaves what happened.
	clock()
	fold()
	// draw shows the table.
	draw(frame)
	// pause gives a person time to read.
	pause(ctx context.Context, d time.Duration) error
	close() error
}

// newDisplay returns what suits the output.
func newDisplay(out *os.File, plain bool) display {
	if _, terminal := size(out); plain || !terminal || os.Getenv("TERM") == "dumb" {
		return &lines{out: out, begun: time.Now()}
	}
	return newScreen(out, os.Getenv("NO_COLOR") == "")
}

// size returns the columns and rows of a terminal; ok is false if out is none.
func size(out *os.File) (dimensions struct{ columns, rows int }, ok bool) {
	ws, err := unix.IoctlGetWinsize(int(out.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return dimensions, false
	}
	dimensions.columns, dimensions.rows = int(ws.Col), int(ws.Row)
	return dimensions, true
}

// wrap breaks text at spaces; all lines but the first begin with indent.
func wrap(text string, width int, indent string) []string {
	var out []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			out = append(out, line)
			line = indent + word
		default:
			line += " " + word
		}
	}
	return append(out, line)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
