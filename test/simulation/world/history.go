package world

import (
	"strconv"
	"time"
)

// Step counts and notes one event.
func (w *World) Step(what string, about ...string) {
	w.Steps++
	w.Note(what, about...)
}

// Note adds a line to the history.
func (w *World) Note(what string, about ...string) {
	w.Lines++
	w.line = appendLine(w.line[:0], w.Now(), what, about)
	_, _ = w.Sum.Write(w.line) // a hash never fails
	if w.Trace != nil {
		_, _ = w.Trace.Write(w.line)
	}
}

// log adds what a process logs to what is written of the history. It is no part of it: who does not write it down has the same one.
func (w *World) log(p *Process, line string) {
	if w.Trace != nil {
		_, _ = w.Trace.Write(appendLine(nil, w.Now(), "log", []string{p.ID, line}))
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
