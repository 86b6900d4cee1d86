package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// screen is the display for a terminal. What was said scrolls up as usual; below it, the table of the
// phase under way is drawn again and again in its place.
type screen struct {
	out     *os.File
	colours bool
	begun   time.Time

	mu     sync.Mutex
	phase  *scene
	since  time.Time // of the phase
	result string
	doing  string
	turn   int // of the spinner
	frame  frame
	height int // lines of the live part on the screen
	err    error
}

func newScreen(out *os.File, colours bool) *screen {
	s := &screen{out: out, colours: colours, begun: time.Now()}
	s.write(hideCursor)
	return s
}

func (s *screen) say(text ...string) {
	width, _ := s.size()
	var out []string
	for _, line := range text {
		if mark, rest, ok := strings.Cut(line, tick+" "); ok && mark == "" {
			out = append(out, hang(s.paint(green, tick), rest, width)...)
			continue
		}
		switch {
		case strings.HasPrefix(line, "$ "):
			out = append(out, s.paint(cyan, line)) // to be copied: the terminal wraps it
		case strings.HasPrefix(line, " "):
			out = append(out, line) // is laid out already
		default:
			out = append(out, wrap(line, width, "")...)
		}
	}
	s.update(func() {}, out...)
}

func (s *screen) progress(what string) { s.update(func() { s.doing = what }) }

func (s *screen) begin(next scene) {
	s.fold()
	s.update(func() { s.phase, s.since = &next, time.Time{} })
}

func (s *screen) clock() { s.update(func() { s.since = time.Now() }) }

// end shows the result below the table, which stays until fold.
func (s *screen) end(result string) { s.update(func() { s.result = result }) }

// fold leaves of the phase what was done and what came of it, and takes the table away.
func (s *screen) fold() {
	s.mu.Lock()
	phase, result := s.phase, s.result
	s.mu.Unlock()
	if phase == nil {
		return
	}
	width, _ := s.size()
	text := []string{s.paint(bold, clip(fmt.Sprintf("%d/%d  %s", phase.number, phase.of, phase.title), width))}
	for _, line := range wrap("$ "+phase.command, width-indent, "    ") {
		text = append(text, strings.Repeat(" ", indent)+s.paint(dim, line))
	}
	if result != "" {
		text = append(text, hang(s.paint(green, tick), result, width)...)
	}
	s.update(func() { s.phase, s.result = nil, "" }, append(text, "")...)
}

func (s *screen) draw(f frame) { s.update(func() { s.frame = f }) }

func (s *screen) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// close leaves the last table and the cursor behind.
func (s *screen) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(showCursor)
	return s.err
}

// update changes what is shown, prints text for good, and draws.
func (s *screen) update(change func(), text ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	var b strings.Builder
	if s.height > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.height)
	}
	b.WriteString("\r")
	width, height := s.size()
	for _, line := range text {
		b.WriteString(line + clearLine + "\n")
	}
	live := s.live(width, height)
	for _, line := range live {
		b.WriteString(line + clearLine + "\n")
	}
	b.WriteString(clearBelow)
	s.height = len(live)
	s.write(b.String())
}

func (s *screen) write(text string) {
	_, err := s.out.WriteString(text)
	s.err = errors.Join(s.err, err)
}

// size is what may be drawn on; the last column and row stay free, so that nothing scrolls by itself.
func (s *screen) size() (width, height int) {
	d, ok := size(s.out)
	if !ok || d.columns == 0 || d.rows == 0 {
		return defaultWidth, defaultHeight
	}
	return min(d.columns-1, maxWidth), d.rows - 1
}
