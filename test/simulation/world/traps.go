package world

import (
	"slices"
	"time"

	"github.com/idalloc/idalloc/test/simulation/dice"
)

// Trap waits for one request, and then something goes wrong. Random faults hit a protocol between two given steps once in
// many thousand histories; these are set there.
type Trap struct {
	until time.Duration
	wants func(c *Call) bool
	// spring is called before the request is on its way. It may suspend or kill its process; true keeps the request
	// from being sent.
	spring func(c *Call) (kept bool)
}

// TrapFor arms a trap for as long as the fault lasts.
func (w *World) TrapFor(lasts time.Duration, wants func(c *Call) bool, spring func(c *Call) bool) *Trap {
	t := &Trap{until: w.Now() + lasts, wants: wants, spring: spring}
	w.traps = append(w.traps, t)
	return t
}

// trapped shows a request to the traps. It returns true if one keeps it.
func (w *World) trapped(c *Call) bool {
	if w.over || c.Process.Dead || c.Process.frozen || c.Process.isCut() {
		return false
	}
	for _, t := range w.traps {
		if w.Now() > t.until || !t.wants(c) {
			continue
		}
		w.Drop(t)
		w.Step("trap", c.Process.ID, c.Verb, c.Resource, c.Name)
		if kept := t.spring(c); kept {
			w.kept = w.Now() + 2*time.Second
			return true
		}
		return false
	}
	return false
}

// Drop takes a trap away. It returns false if that is not armed any more.
func (w *World) Drop(t *Trap) bool {
	i := slices.Index(w.traps, t)
	if i < 0 {
		return false
	}
	w.traps = slices.Delete(slices.Clone(w.traps), i, i+1)
	return true
}

// disarm takes all traps away.
func (w *World) disarm() { w.traps = nil }

// When runs do once the condition holds, or after the time within.
func (w *World) When(within time.Duration, d *dice.Dice, holds func() bool, do func()) {
	until := w.Now() + within
	var look func()
	look = func() {
		if w.Quiet || w.Now() >= until || holds() {
			do()
			return
		}
		w.After(d.Span(5*time.Millisecond, 25*time.Millisecond), look)
	}
	w.After(1, look)
}
