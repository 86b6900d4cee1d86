package simulation

import (
	"strconv"

	"github.com/idalloc/idalloc/test/simulation/dice"
)

// collectSlots has somebody run "idalloc gc": a process without a pod, whose requests fare like all others.
func collectSlots(w *world, f Fault, d *dice.Dice) {
	w.runSweep("gc-"+strconv.FormatUint(f.Draw, 36), dice.Pick(d, w.nodes))
}
