package placement

import "testing"

// The longest text of the owners has no two neighbours with one owner, because a run of them is never longer than its numbers one by
// one. These are the lengths that docs/partitions.md names.
func TestTheLongestTextOfTheOwners(t *testing.T) {
	for _, c := range []struct{ partitions, members, bytes int }{{256, 16, 1017}, {MaxCount, 300, 21661}, {MaxCount, 1000, 27261}} {
		lists := make([][]int, c.members)
		for p := range c.partitions {
			lists[p%c.members] = append(lists[p%c.members], p)
		}
		o := Owners{}
		for id, list := range lists {
			o[id] = Of(list...)
		}
		if got := len(o.String()); got != c.bytes {
			t.Errorf("%d partitions, %d members: %d bytes, want %d", c.partitions, c.members, got, c.bytes)
		}
	}
}
