package allocator

import (
	"testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// A holder is followed by the next one, and the first by the last, so each is followed by one.
func TestWhoFollowsWhom(t *testing.T) {
	divided := func(trust assignment.Trust, listed, held []int) store.Owner {
		o := store.Owner{Trust: assignment.Clean, PartitionTrust: trust}
		o.Record.Present, o.Record.Sealed = true, true
		o.Record.State.Slots = assignment.Slots{}
		row := &assignment.Partitions{Count: 8, Strategy: placement.NameSticky, Owners: placement.Owners{}}
		for _, id := range listed {
			row.Owners[id] = placement.Set{}
		}
		for _, id := range held {
			o.Record.State.Slots[id] = "pod"
		}
		o.Record.State.Partitions = row
		return o
	}
	five := []int{0, 1, 2, 3, 4}
	without := divided(assignment.Absent, nil, five)
	without.Record.State.Partitions = nil
	const nobody = -1
	for name, tc := range map[string]struct {
		owner store.Owner
		want  map[int]int
	}{
		"all have holders":           {divided(assignment.Clean, five, five), map[int]int{0: 4, 1: 0, 2: 1, 3: 2, 4: 3}},
		"one has none":               {divided(assignment.Clean, five, []int{0, 1, 3, 4}), map[int]int{3: 1, 4: 3, 0: 4, 1: 0}},
		"the last ones have none":    {divided(assignment.Clean, five, []int{0, 1, 2}), map[int]int{0: 2, 1: 0, 2: 1}},
		"two":                        {divided(assignment.Clean, []int{0, 1}, []int{0, 1}), map[int]int{0: 1, 1: 0}},
		"one alone":                  {divided(assignment.Clean, []int{2}, []int{2}), map[int]int{2: nobody}},
		"the others have no holders": {divided(assignment.Clean, five, []int{2}), map[int]int{2: nobody}},
		"it is not listed yet":       {divided(assignment.Clean, []int{0, 1, 4}, five), map[int]int{2: 1, 3: 1, 4: 1, 0: 4}},
		"it is above all":            {divided(assignment.Clean, []int{0, 1}, five), map[int]int{4: 1}},
		"nobody knows who owns":      {divided(assignment.Foreign, five, five), map[int]int{0: nobody, 3: nobody}},
		"there are no partitions":    {without, map[int]int{0: nobody}},
	} {
		t.Run(name, func(t *testing.T) {
			for me, want := range tc.want {
				got, ok := neighbourOf(me, tc.owner)
				if !ok {
					got = nobody
				}
				if got != want {
					t.Errorf("the holder of %d follows that of %d, want %d", me, got, want)
				}
			}
		})
	}
}
