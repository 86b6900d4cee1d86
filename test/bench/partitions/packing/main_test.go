package main

import (
	"math/rand/v2"
	"testing"

	"github.com/idalloc/idalloc/autoscaler/packing"
	"github.com/idalloc/idalloc/pkg/placement"
)

// The paper's best algorithm for moves is Modified Worst Fit. Pack needs fewer pods and moves less, even if the other one may end any pod
// and Pack only the highest ids. At rest both move nothing.
func TestPackIsBelowModifiedWorstFitOnBothAxes(t *testing.T) {
	playing := chosen(ours, modifiedWorstFit)
	for _, step := range steps() {
		means := protocol{partitions: 200, measurements: 100, seeds: 2}.play(step, playing)
		if len(means) != 2 || means[0].name != ours || means[1].name != modifiedWorstFit {
			t.Fatalf("%+v play", means)
		}
		ours, theirs := means[0], means[1]
		t.Logf("%d %%: %.3f and %.1f, theirs %.3f and %.1f", step, ours.overBound, ours.moved, theirs.overBound, theirs.moved)
		if step == 0 {
			if ours.moved > 0 || ours.overBound > theirs.overBound {
				t.Errorf("at rest: %+v, theirs %+v", ours, theirs)
			}
			continue
		}
		if ours.overBound >= theirs.overBound || ours.moved >= theirs.moved {
			t.Errorf("steps of %d %%: %+v, theirs %+v", step, ours, theirs)
		}
	}
}

// From any division, each algorithm gives each partition to one pod, opens no more pods than it must, and fills none beyond its capacity.
func TestEachPartitionHasOnePodWithRoomForIt(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // the same ones each time
	for range 200 {
		in := packing.Input{Speeds: make([]float64, 1+r.IntN(40)), Capacity: fastest, Owners: placement.Owners{}}
		advance(r, in.Speeds, 0, true)
		for p := range in.Speeds {
			if id := r.IntN(12) - 1; id != none {
				in.Owners[id] = in.Owners[id].Union(placement.Of(p))
			}
		}
		for _, c := range contenders() {
			checkPacking(t, in, c)
		}
	}
}

func checkPacking(t *testing.T, in packing.Input, c contender) {
	t.Helper()
	out := c.pack(in)
	all, n := placement.Set{}, 0
	for id, set := range out.Owners {
		load := 0.0
		for p := range set.All() {
			load += in.Speeds[p]
		}
		if load > in.Capacity || id < 0 {
			t.Fatalf("%s: id %d of %d pods has a load of %g: %+v", c.name, id, out.Pods, load, in)
		}
		all, n = all.Union(set), n+set.Len()
	}
	if n != len(in.Speeds) || !all.Equal(placement.Between(0, n-1)) || len(out.Owners) != out.Pods || out.Pods < packing.LowerBound(in) {
		t.Fatalf("%s: %d pods for %d partitions: %s", c.name, out.Pods, len(in.Speeds), out.Owners)
	}
}
