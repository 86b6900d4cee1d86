package packing

import (
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/pkg/placement"
)

// inputs draws inputs, also such as no user should have.
func inputs() *rapid.Generator[Input] {
	speed := rapid.OneOf(
		rapid.Float64Range(0, 60), rapid.Float64Range(0, 5), rapid.Float64Range(0, 300),
		rapid.SampledFrom([]float64{0, 25, 50, 100, 1e18, math.MaxFloat64, math.SmallestNonzeroFloat64, -1, math.NaN(), math.Inf(1)}),
	)
	return rapid.Custom(func(t *rapid.T) Input {
		in := Input{
			Speeds:   rapid.SliceOfN(speed, 0, 40).Draw(t, "speeds"),
			Capacity: rapid.SampledFrom([]float64{100, 100, 100, 1, 1e-300, 1e300, math.SmallestNonzeroFloat64}).Draw(t, "capacity"),
			Margin:   rapid.SampledFrom([]float64{0, 0, 1, 10, 1e9}).Draw(t, "margin"),
			Min:      rapid.SampledFrom([]int{0, 0, 1, 5, 50}).Draw(t, "min"),
			Max:      rapid.SampledFrom([]int{0, 0, 0, 1, 2, 7}).Draw(t, "max"),
		}
		ids := rapid.SampledFrom([]int{none, 0, 1, 2, 3, 4, 5, 6, 7, 8, 39, 100, math.MaxInt32})
		lists := map[int][]int{}
		for p := range in.Speeds {
			id := ids.Draw(t, "id")
			lists[id] = append(lists[id], p)
		}
		delete(lists, none)
		in.Owners = ownersOf(lists)
		return in
	})
}

func ownersOf(lists map[int][]int) placement.Owners {
	o := placement.Owners{}
	for id, list := range lists {
		o[id] = placement.Of(list...)
	}
	return o
}

// loads returns the sizes of what each id has, as the package counts it.
func loads(in Input, o placement.Owners) map[int]int64 {
	l := loadOf(in)
	sums := map[int]int64{}
	for id, s := range o {
		sums[id] = l.total(slices.Collect(s.All()))
	}
	return sums
}

func TestAnyInputIsPacked(t *testing.T) { rapid.Check(t, isPacked) }

func FuzzPack(f *testing.F) { f.Fuzz(rapid.MakeFuzz(isPacked)) }

// isPacked fails if Pack does not pack any input as it says.
func isPacked(t *rapid.T) {
	in := inputs().Draw(t, "input")
	before := maps.Clone(in.Owners)
	out := Pack(in)
	isWhole(t, in, out)
	isWithin(t, in, out)
	if again := Pack(in); !again.Owners.Equal(out.Owners) {
		t.Fatalf("once %s, once %s", out.Owners, again.Owners)
	}
	if !before.Equal(in.Owners) {
		t.Fatalf("the input was changed to %s", in.Owners)
	}
	if in.Max <= 0 {
		holds(t, in, out)
	}
	in.Owners = out.Owners
	if again := Pack(in); !again.Owners.Equal(in.Owners) {
		t.Fatalf("packed again, %s becomes %s", in.Owners, again.Owners)
	}
}

// isWhole fails if not every partition has one owner among the ids from 0 on.
func isWhole(t *rapid.T, in Input, out Packing) {
	all := placement.Set{}
	n := 0
	for id, s := range out.Owners {
		if id < 0 || id >= out.Pods {
			t.Fatalf("there are %d pods, and one has id %d", out.Pods, id)
		}
		all = all.Union(s)
		n += s.Len()
	}
	if n != len(in.Speeds) || !all.Equal(placement.Between(0, n-1)) || len(out.Owners) != out.Pods {
		t.Fatalf("%d partitions, %d pods: %s", len(in.Speeds), out.Pods, out.Owners)
	}
}

// isWithin fails if there are too few pods, or too many.
func isWithin(t *rapid.T, in Input, out Packing) {
	least, most := in.Min, math.MaxInt
	if in.Max > 0 {
		least, most = min(in.Min, in.Max), in.Max
	}
	if out.Pods < least || out.Pods > most {
		t.Fatalf("%d pods, not in the range from %d to %d", out.Pods, least, most)
	}
}

// holds fails if a pod has more than it holds, or there are fewer pods than there must be.
func holds(t *rapid.T, in Input, out Packing) {
	for id, sum := range loads(in, out.Owners) {
		if s := out.Owners[id]; sum > room && (s.Len() > 1 || !slices.Contains(out.Oversized, first(s))) {
			t.Fatalf("id %d has %s, which is %g of a pod", id, s, float64(sum)/full)
		}
	}
	if bound := LowerBound(in); out.Pods < bound {
		t.Fatalf("%d pods, fewer than the lower bound %d", out.Pods, bound)
	}
}

func first(s placement.Set) int {
	for p := range s.All() {
		return p
	}
	return none
}

func TestNothingMovesWithoutNeed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := inputs().Draw(t, "input")
		in.Max = 0
		in.Owners = Pack(in).Owners
		for p := range in.Speeds { // less load everywhere, so that no pod holds too much
			in.Speeds[p] *= rapid.Float64Range(0.7, 1).Draw(t, "factor")
		}
		if out := Pack(in); out.Pods == len(in.Owners) && !out.Owners.Equal(in.Owners) {
			t.Fatalf("%d pods as before, but %s becomes %s", out.Pods, in.Owners, out.Owners)
		}
	})
}

func TestMaxSpreadsEvenly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := inputs().Draw(t, "input")
		in.Max = rapid.IntRange(1, 7).Draw(t, "most")
		l := loadOf(in)
		out := Pack(in)
		share := l.share(in.Max)
		for id, sum := range loads(in, out.Owners) {
			if out.Owners[id].Len() > 1 && sum > 2*share {
				t.Fatalf("id %d has %g of an even share: %s", id, float64(sum)/float64(share), out.Owners)
			}
		}
	})
}

func TestManySmallPartitionsAreLevelAtMax(t *testing.T) {
	in := Input{Speeds: slices.Repeat([]float64{1, 2, 3}, 100), Capacity: 100, Max: 4}
	for id, sum := range loads(in, Pack(in).Owners) {
		if share := loadOf(in).share(4); sum > share+share/16 {
			t.Errorf("id %d has %d, the even share is %d", id, sum, share)
		}
	}
}

// Best fit would open three pods here. Two are enough, and the most there may be.
func TestAllPodsUpToTheMaximumAreUsedBeforeOneHoldsTooMuch(t *testing.T) {
	l := loadOf(Input{Speeds: []float64{4, 4, 3, 3, 3, 3}, Capacity: 10})
	b := l.grown(1, 2)
	if b == nil || len(b.lists) != 2 || b.loads[0] > room || b.loads[1] > room {
		t.Fatalf("%+v", b)
	}
}
