package placement

import (
	"math"
	"testing"
)

func TestMeasures(t *testing.T) {
	for name, c := range map[string]struct {
		before, after Owners
		balance       float64
		stickiness    float64
		moves         int
	}{
		"nothing": {nil, nil, 0, 1, 0},
		"a first start": {
			nil, Owners{0: Between(0, 2), 1: Between(3, 5), 2: Between(6, 7)},
			math.Sqrt(2.0 / 9), 1, 8,
		},
		"one goes": {
			Owners{0: Of(0, 3, 6), 1: Of(1, 4, 7), 2: Of(2, 5)}, Owners{0: Of(0, 3, 4, 6), 2: Of(1, 2, 5, 7)},
			0, 5.0 / 8, 3,
		},
		"two change places": {Owners{0: Of(0), 1: Of(1)}, Owners{0: Of(1), 1: Of(0)}, 0, 0, 2},
		"one has all":       {Owners{0: Of(0), 1: Of(1)}, Owners{0: Between(0, 3), 1: {}}, 2, 0.5, 3},
		"nobody is left":    {Owners{0: Of(0), 1: Of(1)}, Owners{}, 0, 0, 0},
	} {
		if got := BalanceDegree(c.after); math.Abs(got-c.balance) > 1e-12 {
			t.Errorf("%s: the balance degree is %v, want %v", name, got, c.balance)
		}
		if got := Stickiness(c.before, c.after); math.Abs(got-c.stickiness) > 1e-12 {
			t.Errorf("%s: the stickiness is %v, want %v", name, got, c.stickiness)
		}
		if got := Moves(c.before, c.after); got != c.moves {
			t.Errorf("%s: %d moves, want %d", name, got, c.moves)
		}
	}
}
