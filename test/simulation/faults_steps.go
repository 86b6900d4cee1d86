package simulation

import (
	"math"

	"github.com/idalloc/idalloc/test/simulation/dice"
)

// drawHoldUp draws which requests wait, and how often.
func drawHoldUp(n *network, d *dice.Dice) {
	n.holdUp = holdUp{
		chance: math.Pow(10, -1.5*d.Float()), steps: uint(d.Between(1, 1<<steps-1)), again: dice.Pick(d, []float64{0, 0.5, 0.9}), meanwhile: dice.Pick(d, []float64{0.2, 0.6, 0.8}),
	}
}
