package faults

import (
	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// neverStart has some of the pods that are made meanwhile not start at all, until somebody repairs them in the end: no node has room for them,
// or a volume does not exist.
func neverStart(w *world.World, f Fault, d *dice.Dice) {
	w.Stuck = 0.3 + 0.7*d.Float()
	if w.Profile.Rolls() && d.Chance(0.7) {
		rollout(w, f, d)
	}
	w.After(f.Lasts, func() { w.Stuck = 0 })
}

// brokenRollout begins a revision whose programs end by themselves soon after they got an id, until somebody repairs what they need.
func brokenRollout(w *world.World, f Fault, d *dice.Dice) {
	rollout(w, f, d)
	if v := w.Owner(); v != nil {
		w.Broken[world.Template(v.Object)] = true
	}
}
