package world

import (
	"hash"
	"hash/fnv"
	"io"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// History is what happened so far, a line for each event.
type History struct {
	// Trace gets all lines, if it is not nil.
	Trace io.Writer
	// Steps are the events that count, Lines all.
	Steps, Lines int
	start        time.Time
	sum          hash.Hash64
	line         []byte // the newest
}

func newHistory() History { return History{start: time.Now(), sum: fnv.New64a()} }

// Now is the time since the beginning.
func (h *History) Now() time.Duration { return time.Since(h.start) }

// Sum is that of all lines: two histories with the same sum are the same.
func (h *History) Sum() uint64 { return h.sum.Sum64() }

// Step counts and notes one event.
func (h *History) Step(what string, about ...string) {
	h.Steps++
	h.Note(what, about...)
}

// Note adds a line to the history.
func (h *History) Note(what string, about ...string) {
	h.Lines++
	h.line = appendLine(h.line[:0], h.Now(), what, about)
	_, _ = h.sum.Write(h.line) // a hash never fails
	if h.Trace != nil {
		_, _ = h.Trace.Write(h.line)
	}
}

// log adds what a process logs to the trace. It is no part of the history, which is the same without a trace.
func (h *History) log(who, line string) {
	if h.Trace != nil {
		_, _ = h.Trace.Write(appendLine(nil, h.Now(), "log", []string{who, line}))
	}
}

// traceKeys adds to the trace which of idalloc's keys a stored change is about, and what they say now.
func (h *History) traceKeys(v *server.Version) {
	if h.Trace == nil || !v.Exists() || !v.Before.Exists() {
		return
	}
	now, before := v.Annotations(), v.Before.Annotations()
	for _, key := range append(assignment.Keys(), receipt.Key) {
		if now[key] != before[key] {
			h.log(v.Name, key+" "+now[key])
		}
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
