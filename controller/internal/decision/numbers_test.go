package decision

import (
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// What the controller remembers of the ends of pods, look by look.
func TestAnIDRestsAfterTheEndOfItsLastPod(t *testing.T) {
	const rest = 10 * time.Second
	start := now()
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	runs := func(id int) Pod {
		p := Pod{Assigned: true}
		p.Receipt = receipt.Receipt{State: receipt.Locks, Begun: true, Share: receipt.Share{ID: id}}
		return p
	}
	var e Ends
	for _, c := range []struct {
		what  string
		at    int
		pods  []Pod
		until map[int]int
	}{
		{"a controller starts, and counts from then", 0, []Pod{runs(0), runs(3)}, map[int]int{1: 10, 7: 10}},
		{"nothing changes", 20, []Pod{runs(0), runs(3)}, map[int]int{1: 10}},
		{"two pods have ended, one above the count", 30, nil, map[int]int{0: 40, 1: 10, 3: 40}},
		{"the rest goes on", 35, nil, map[int]int{0: 40, 3: 40}},
		{"another pod has the id", 50, []Pod{runs(0)}, map[int]int{3: 40}},
		{"its container restarts", 55, []Pod{runs(0)}, map[int]int{3: 40}},
		{"it ends", 60, nil, map[int]int{0: 70, 3: 40}},
	} {
		e.See(c.pods, at(c.at))
		for id, want := range c.until {
			if got := e.rested(id, rest); !got.Equal(at(want)) {
				t.Errorf("%s: id %d rests until %s", c.what, id, got.Sub(start))
			}
		}
	}
}
