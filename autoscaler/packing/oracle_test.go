package packing

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// fewest returns the fewest pods that hold everything.
func (l load) fewest() int {
	for n := 1; ; n++ {
		if l.cheapestInto(n) >= 0 {
			return n
		}
	}
}

// cheapestInto returns the least load that has to move to have n pods, with ids below n. It is less than 0 if n pods cannot hold it. It
// tries all packings.
func (l load) cheapestInto(n int) int64 {
	loads, counts := make([]int64, n), make([]int, n)
	best := int64(-1)
	var try func(p int, moved int64)
	try = func(p int, moved int64) {
		if best >= 0 && moved >= best {
			return
		}
		if p == len(l.sizes) {
			best = moved
			return
		}
		for id := range n {
			if counts[id] > 0 && loads[id]+l.sizes[p] > room {
				continue
			}
			loads[id] += l.sizes[p]
			counts[id]++
			cost := moved
			if l.owner[p] != none && l.owner[p] != id {
				cost += l.sizes[p]
			}
			try(p+1, cost)
			loads[id] -= l.sizes[p]
			counts[id]--
		}
	}
	try(0, 0)
	return best
}

// moved returns the size of what has another id in out than it had.
func (l load) moved(out Packing) int64 {
	sum := int64(0)
	for id, s := range out.Owners {
		for p := range s.All() {
			if l.owner[p] != none && l.owner[p] != id {
				sum += l.sizes[p]
			}
		}
	}
	return sum
}

// small draws up to most partitions, which up to four ids own.
func small(r *rand.Rand, most int) Input {
	in := Input{Speeds: make([]float64, 1+r.IntN(most)), Capacity: 100}
	lists := map[int][]int{}
	for p := range in.Speeds {
		in.Speeds[p] = float64(r.IntN(101))
		if id := r.IntN(5) - 1; id != none {
			lists[id] = append(lists[id], p)
		}
	}
	in.Owners = ownersOf(lists)
	return in
}

func TestBoundsAreBelowTheFewestPods(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // the same ones each time
	exact, all := 0, 0
	for range 400 {
		in := small(r, 8)
		l := loadOf(in)
		fewest := l.fewest()
		if bound := LowerBound(in); bound > fewest {
			t.Fatalf("the lower bound is %d, but %d pods hold %v", bound, fewest, in.Speeds)
		} else if bound == fewest {
			exact++
		}
		all++
		in.Owners = nil // as from nothing: the bound of Best Fit Decreasing
		if pods := Pack(in).Pods; 9*pods > 11*fewest+6 {
			t.Fatalf("%d pods for what %d hold: %v", pods, fewest, in.Speeds)
		}
	}
	if exact*10 < all*9 {
		t.Errorf("the lower bound is exact only for %d of %d", exact, all)
	}
}

// Nothing moves less than the cheapest of all packings into as many pods. Pack is not far from it, all in all.
func TestPackMovesLittleMoreThanTheOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2)) //nolint:gosec // the same ones each time
	moved, least, pods, fewest := int64(0), int64(0), 0, 0
	for range 400 {
		in := small(r, 8)
		l := loadOf(in)
		out := Pack(in)
		cheapest, cost := l.cheapestInto(out.Pods), l.moved(out)
		if cheapest < 0 || cost < cheapest {
			t.Fatalf("%d pods, %d moved, the oracle says %d: %+v", out.Pods, cost, cheapest, in)
		}
		moved += cost
		least += cheapest
		pods += out.Pods
		fewest += l.fewest()
	}
	t.Logf("moved %.2f times the least; %.3f times the fewest pods", float64(moved)/float64(least), float64(pods)/float64(fewest))
	if float64(moved) > 1.05*float64(least) {
		t.Errorf("%.2f times the least moved", float64(moved)/float64(least))
	}
	if float64(pods) > 1.03*float64(fewest) {
		t.Errorf("%d pods instead of %d", pods, fewest)
	}
}

func TestLeastOfAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := load{sizes: rapid.SliceOfN(rapid.Int64Range(0, 50), 1, 14).Draw(t, "sizes")}
		list := make([]int, len(l.sizes))
		for p := range list {
			list[p] = p
		}
		need := rapid.Int64Range(1, max(l.total(list), 1)).Draw(t, "need")
		if l.total(list) < need {
			t.Skip("all together are not enough")
		}
		best, fewest := int64(math.MaxInt64), 0
		for set := range uint(1) << len(list) {
			sum := int64(0)
			for p := range list {
				if set>>p&1 == 1 {
					sum += l.sizes[p]
				}
			}
			if n := bits.OnesCount(set); sum >= need && (sum < best || sum == best && n < fewest) {
				best, fewest = sum, n
			}
		}
		sum, leave := l.least(list, need)
		if sum < need || sum != l.total(leave) {
			t.Fatalf("%d leave, which are said to be %d: need %d", l.total(leave), sum, need)
		}
		if len(list) <= few && (sum != best || len(leave) != fewest) {
			t.Fatalf("%d leave in %d parts, the best is %d in %d", sum, len(leave), best, fewest)
		}
		if sum >= need+50 {
			t.Fatalf("%d leave, though %d are needed and no partition is above 50", sum, need)
		}
	})
}

// As few pods as can hold everything are enough in nearly all cases, whatever each pod owns.
func TestMaxIsAsManyAsThereMustBe(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3)) //nolint:gosec // the same ones each time
	overloaded, all := 0, 0
	for range 1000 {
		in := small(r, 8)
		in.Max = loadOf(in).fewest()
		out := Pack(in)
		for id, sum := range loads(in, out.Owners) {
			if sum > room && out.Owners[id].Len() > 1 {
				overloaded++
				break
			}
		}
		all++
	}
	t.Logf("%d of %d are overloaded", overloaded, all)
	if overloaded*50 > all {
		t.Errorf("%d of %d are overloaded, though all would fit", overloaded, all)
	}
}
