package main

import (
	"fmt"
	"strings"
	"time"
)

const (
	hideCursor, showCursor = "\x1b[?25l", "\x1b[?25h"
	clearLine, clearBelow  = "\x1b[K", "\x1b[J"
	reset                  = "\x1b[0m"
	bold, dim              = "\x1b[1m", "\x1b[2m"
	green, yellow, cyan    = "\x1b[32m", "\x1b[33m", "\x1b[36m"
	columns                = "%3s  %-*s  %-11s  %4s  %-13s %s"
	podWidth               = 24
	indent                 = 5
	defaultHeight          = 24
	spinnerFrames          = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
)

// live returns the lines that are drawn in place. The caller has the lock.
func (s *screen) live(width, height int) []string {
	s.turn++
	spinner := s.paint(cyan, string([]rune(spinnerFrames)[s.turn%len([]rune(spinnerFrames))]))
	if s.phase == nil {
		if s.doing == "" {
			return nil
		}
		return []string{" " + spinner + "  " + clip(s.doing, width-4)}
	}
	head := s.head(width)
	foot := []string{"", s.status(spinner)}
	if s.result != "" {
		foot = append([]string{""}, hang(s.paint(green, tick), s.result, width)...)
	}
	rows := s.table(width)
	if room := max(1, height-len(head)-len(foot)); len(rows) > room {
		rows = append(rows[:room-1], fmt.Sprintf("     (%d more rows: the terminal is small)", len(rows)-room+1))
	}
	return append(append(head, rows...), foot...)
}

func (s *screen) head(width int) []string {
	p := s.phase
	out := []string{s.paint(bold, clip(fmt.Sprintf("%d/%d  %s", p.number, p.of, p.title), width))}
	for _, line := range wrap("$ "+p.command, width-indent, "    ") {
		out = append(out, strings.Repeat(" ", indent)+s.paint(cyan, line))
	}
	for _, line := range wrap(p.look, width-indent, "") {
		out = append(out, strings.Repeat(" ", indent)+line)
	}
	return append(out, "")
}

func (s *screen) table(width int) []string {
	out := make([]string, 0, 1+len(s.frame.rows))
	out = append(out, s.paint(dim, clip(fmt.Sprintf(columns, "ID", podWidth, "POD", "STATE", "AGE", "THE POD SAYS", "CHANGE"), width)))
	now := time.Now()
	for _, r := range s.frame.rows {
		line := clip(fmt.Sprintf(columns, r.id, podWidth, r.pod, r.state, r.age(now), r.says, r.note), width)
		out = append(out, s.paint(colour(r), strings.TrimRight(line, " ")))
	}
	return out
}

func colour(r row) string {
	switch {
	case r.mood == leaving:
		return yellow
	case r.mood == coming:
		return cyan
	case r.mood == empty:
		return dim
	case r.note != "":
		return green
	default:
		return ""
	}
}

// status says how far it is.
func (s *screen) status(spinner string) string {
	if s.doing != "" {
		return " " + spinner + "  " + s.doing
	}
	if s.since.IsZero() {
		return " " + spinner + "  begins in a moment"
	}
	return fmt.Sprintf(" %s  %s, %d of %d pods hold an id", spinner, seconds(time.Since(s.since)), len(s.frame.holders), s.frame.count)
}

func (s *screen) paint(style, text string) string {
	if !s.colours || style == "" || text == "" {
		return text
	}
	return style + text + reset
}

// hang sets text behind a mark, and further lines below its beginning.
func hang(mark, text string, width int) []string {
	out := wrap(text, width-indent, "")
	for i, line := range out {
		if i == 0 {
			out[i] = " " + mark + strings.Repeat(" ", indent-2) + line
		} else {
			out[i] = strings.Repeat(" ", indent) + line
		}
	}
	return out
}

func clip(text string, width int) string {
	if runes := []rune(text); len(runes) > width {
		return string(runes[:max(0, width-1)]) + "…"
	}
	return text
}
