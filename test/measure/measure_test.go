package measure

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/pkg/placement"
)

func TestMeasures(t *testing.T) {
	for name, c := range map[string]struct {
		before, after placement.Owners
		balance       float64
		stickiness    float64
		moves         int
	}{
		"nothing": {nil, nil, 0, 1, 0},
		"a first start": {
			nil, placement.Owners{0: placement.Between(0, 2), 1: placement.Between(3, 5), 2: placement.Between(6, 7)},
			math.Sqrt(2.0 / 9), 1, 8,
		},
		"one goes": {
			placement.Owners{0: placement.Of(0, 3, 6), 1: placement.Of(1, 4, 7), 2: placement.Of(2, 5)}, placement.Owners{0: placement.Of(0, 3, 4, 6), 2: placement.Of(1, 2, 5, 7)},
			0, 5.0 / 8, 3,
		},
		"two change places": {placement.Owners{0: placement.Of(0), 1: placement.Of(1)}, placement.Owners{0: placement.Of(1), 1: placement.Of(0)}, 0, 0, 2},
		"one has all":       {placement.Owners{0: placement.Of(0), 1: placement.Of(1)}, placement.Owners{0: placement.Between(0, 3), 1: {}}, 2, 0.5, 3},
		"no member is left": {placement.Owners{0: placement.Of(0), 1: placement.Of(1)}, placement.Owners{}, 0, 0, 0},
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

// That sticky moves as little as possible is shown by trying all targets, in package placement.
func TestSmallestNumberOfMovesIsThatOfSticky(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := placement.Input{Partitions: rapid.IntRange(0, 40).Draw(t, "partitions"), Owners: placement.Owners{}}
		in.Members = rapid.SliceOfNDistinct(rapid.IntRange(0, 7), 0, 8, rapid.ID[int]).Draw(t, "members")
		for p := range in.Partitions + 3 {
			if id := rapid.IntRange(-1, 9).Draw(t, "owner"); id >= 0 {
				in.Owners[id] = in.Owners[id].Union(placement.Of(p))
			}
		}
		if got, want := IdealMoves(in), Moves(in.Owners, placement.Sticky(in)); got != want {
			t.Fatalf("%d moves, want %d", got, want)
		}
	})
}
