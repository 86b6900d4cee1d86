package faults

import (
	"math"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// drawHoldUp draws which requests wait, and how often.
func drawHoldUp(n *world.Network, d *dice.Dice) {
	n.HoldUp = world.HoldUp{
		Chance: math.Pow(10, -1.5*d.Float()), Steps: uint(d.Between(1, 1<<world.KindsOfSteps-1)), Again: dice.Pick(d, []float64{0, 0.5, 0.9}), Meanwhile: dice.Pick(d, []float64{0.2, 0.6, 0.8}),
	}
}
