package simulation

import (
	"strconv"
	"time"
)

// Step counts and notes one event.
func (w *world) Step(what string, about ...string) {
	w.steps++
	w.note(what, about...)
}

// note adds a line to the history.
func (w *world) note(what string, about ...string) {
	w.lines++
	w.line = appendLine(w.line[:0], w.Now(), what, about)
	_, _ = w.sum.Write(w.line) // a hash never fails
	if w.trace != nil {
		_, _ = w.trace.Write(w.line)
	}
}

// log adds what a process logs to what is written of the history. It is no part of it: who does not write it down has the same one.
func (w *world) log(p *process, line string) {
	if w.trace != nil {
		_, _ = w.trace.Write(appendLine(nil, w.Now(), "log", []string{p.id, line}))
	}
}

// appendLine is fmt's "%14.9f %-9s %s\n" of seconds and words, at a fraction of its price.
func appendLine(b []byte, at time.Duration, what string, about []string) []byte {
	const space, zeros = "         ", "000000000"
	var digits [20]byte
	seconds := strconv.AppendInt(digits[:0], int64(at/time.Second), 10)
	b = append(b, space[:max(0, 4-len(seconds))]...)
	b = append(append(b, seconds...), '.')
	fraction := strconv.AppendInt(digits[:0], int64(at%time.Second), 10)
	b = append(b, zeros[:len(zeros)-len(fraction)]...)
	b = append(append(b, fraction...), ' ')
	b = append(b, what...)
	b = append(b, space[:max(0, len(space)-len(what))]...)
	for _, word := range about {
		b = append(append(b, ' '), word...)
	}
	if len(about) == 0 {
		b = append(b, ' ')
	}
	return append(b, '\n')
}
