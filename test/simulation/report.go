package simulation

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/history"
	"github.com/idalloc/idalloc/test/overlap"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// Chronicle notes who acted under which id when, for a page of a history. Its zero value is empty.
type Chronicle struct {
	records []overlap.Record
	shown   []showing
}

// showing is what a process acts under, and when that was seen last.
type showing struct {
	p    *world.Process
	id   identity.Identity
	seen int64
}

// look compares what all processes believe with what they believed.
func (c *Chronicle) look(w *world.World) {
	now := int64(w.Now())
	c.shown = slices.DeleteFunc(c.shown, func(s showing) bool {
		b := shows(w, s.p)
		if b != nil && b.ID == s.id.ID && b.Token == s.id.Token && b.Count == s.id.Count {
			return false
		}
		until := max(s.seen, now-1)
		c.add(s.p, s.id, until)
		s.id.ID = overlap.None
		c.add(s.p, s.id, until)
		return true
	})
	for _, p := range w.Processes {
		b := shows(w, p)
		if b == nil || slices.ContainsFunc(c.shown, func(s showing) bool { return s.p == p }) {
			continue
		}
		c.shown = append(c.shown, showing{p, *b, now})
		c.add(p, *b, now)
	}
}

func (c *Chronicle) add(p *world.Process, id identity.Identity, at int64) {
	c.records = append(c.records, overlap.Record{Before: at, After: at, Pod: p.Pod, UID: p.UID, ID: id.ID, Count: id.Count, Token: id.Token})
}

// shows is what the process acts under, nil if it does not, or is a ghost.
func shows(w *world.World, p *world.Process) *identity.Identity {
	if w.Forced(p) && p.FenceAfter == 0 {
		return nil
	}
	return p.Belief()
}

// Write writes the run of a history with its page into dir, an empty directory.
func (c *Chronicle) Write(dir string, r Result) error {
	w, err := history.Create(dir)
	if err != nil {
		return err
	}
	rest := map[string]int64{}
	for name, n := range r.Faults {
		rest[name] = int64(n)
	}
	for _, f := range r.List {
		mark := history.Fault{At: int64(f.At), Kind: f.Name}
		if f.Lasts > 0 {
			mark.Until = int64(min(f.At+f.Lasts, r.Healed))
		}
		delete(rest, f.Name) // the page counts the marks
		w.Fault(mark)
	}
	if err := w.Records(world.OwnerName, c.records); err != nil {
		return err
	}
	return w.Close(history.Summary{
		Title: fmt.Sprintf("A simulated history: seed %d", r.Seed), Seed: strconv.FormatUint(r.Seed, 10), Histories: 1, Steps: int64(r.Steps),
		Counts: rest, Violations: r.Violations,
		Notes: []string{
			"Time is virtual. The faults end after " + r.Healed.Round(time.Millisecond).String() + "; then everything has to settle.",
			"A process whose pod was deleted by force is not drawn from then on, unless it has strict mode: nothing is promised for it.",
			"Drawn by the seed: " + r.About,
			"Again: " + r.again(),
		},
	})
}
