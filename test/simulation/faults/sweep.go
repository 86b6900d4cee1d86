package faults

import (
	"strconv"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// collectSlots has somebody run "idalloc gc": a process without a pod, whose requests fare like all others.
func collectSlots(w *world.World, f Fault, d *dice.Dice) {
	w.Sweep("gc-"+strconv.FormatUint(f.Draw, 36), dice.Pick(d, w.Nodes))
}
