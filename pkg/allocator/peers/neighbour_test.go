package peers

import (
	"strconv"
	"testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/placement"
)

// A holder is followed by the next one, and the first by the last, so each is followed by one.
func TestWhoFollowsWhom(t *testing.T) {
	divided := func(listed, held []int) (o store.Owner) {
		row := &assignment.Row{Count: 8, Strategy: placement.NameSticky, Owners: placement.Owners{}}
		for _, id := range listed {
			row.Owners[id] = placement.Set{}
		}
		o.Record.State = assignment.State{Slots: assignment.Slots{}, Row: row}
		for _, id := range held {
			o.Record.State.Slots[id] = strconv.Itoa(id)
		}
		return o
	}
	five := []int{0, 1, 2, 3, 4}
	for name, tc := range map[string]struct {
		owner store.Owner
		want  map[int]string
	}{
		"all have holders":           {divided(five, five), map[int]string{0: "4", 1: "0", 2: "1", 3: "2", 4: "3"}},
		"one has none":               {divided(five, []int{0, 1, 3, 4}), map[int]string{3: "1", 4: "3", 0: "4", 1: "0"}},
		"the last ones have none":    {divided(five, []int{0, 1, 2}), map[int]string{0: "2", 1: "0", 2: "1"}},
		"two":                        {divided([]int{0, 1}, []int{0, 1}), map[int]string{0: "1", 1: "0"}},
		"one alone":                  {divided([]int{2}, []int{2}), map[int]string{2: ""}},
		"the others have no holders": {divided(five, []int{2}), map[int]string{2: ""}},
		"it is not listed yet":       {divided([]int{0, 1, 4}, five), map[int]string{2: "1", 3: "1", 4: "1", 0: "4"}},
		"it is above all":            {divided([]int{0, 1}, five), map[int]string{4: "1"}},
		"there are no partitions":    {store.Owner{}, map[int]string{0: ""}},
	} {
		t.Run(name, func(t *testing.T) {
			for me, want := range tc.want {
				if got := neighbourOf(me, tc.owner); got != want {
					t.Errorf("the holder of %d follows %q, want %q", me, got, want)
				}
			}
		})
	}
}
