package simulation

import (
	"github.com/idalloc/idalloc/test/simulation/dice"
)

// neverStart has some of the pods that are made meanwhile not start at all, until somebody repairs them in the end: no node has room for them,
// or a volume does not exist.
func neverStart(w *world, f Fault, d *dice.Dice) {
	w.stuck = 0.3 + 0.7*d.Float()
	if w.profile.Rolls() && d.Chance(0.7) {
		rollout(w, f, d)
	}
	w.After(f.Lasts, func() { w.stuck = 0 })
}

// brokenRollout begins a revision whose programs end by themselves soon after they got an id, until somebody repairs what they need.
func brokenRollout(w *world, f Fault, d *dice.Dice) {
	rollout(w, f, d)
	if v := w.owner(); v != nil {
		w.broken[template(v.Object)] = true
	}
}
