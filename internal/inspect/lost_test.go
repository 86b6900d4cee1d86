package inspect

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// outlives has pod b, with id 1, outlive its grace period by a minute, while pod x waits.
func outlives(strict bool) snapshot {
	n := settledPods(3)
	n.now = time.Unix(1000, 0)
	n.add("x")
	n.edit("b", func(p *pod) {
		p.Terminating, p.Deadline, p.node = true, n.now.Add(-time.Minute), "node-1"
		if strict {
			p.Receipt.FenceAfter = 30 * time.Second
		}
	})
	if strict {
		n.owner.Record.State.FenceAfter = 30 * time.Second
	}
	return n
}

func TestAPodThatOutlivesItsGracePeriodIsNamedWithTheWayOut(t *testing.T) {
	for name, tc := range map[string]struct {
		strict bool
		says   []string
	}{
		"strict mode":  {true, []string{"id 1", "pod b", "1m0s", "node node-1", "quarantine of 43s"}},
		"default mode": {false, []string{"id 1", "pod b", "node node-1", allocator.OutlivesGrace}},
	} {
		n := outlives(tc.strict)
		report := check(n)
		if got := briefs(report); !slices.Equal(got, []brief{{HeldByLost, 1, "b"}}) {
			t.Errorf("%s: found %v", name, got)
			continue
		}
		for _, part := range tc.says {
			if !strings.Contains(report.Findings[0].Detail, part) {
				t.Errorf("%s: it does not say %q: %s", name, part, report.Findings[0].Detail)
			}
		}
		if row := n.view().Slots[1]; row.State != Lost || row.Pod != "b" {
			t.Errorf("%s: the row is %+v", name, row)
		}
	}
}

func TestAPodWithinItsGracePeriodIsNotLost(t *testing.T) {
	n := outlives(true)
	n.edit("b", func(p *pod) { p.Deadline = n.now.Add(time.Second) })
	if r := check(n); !r.OK || n.view().Slots[1].State != Held {
		t.Errorf("found %v, the row is %+v", briefs(r), n.view().Slots[1])
	}
}

// The node cannot take the receipt away, and it locks nothing.
func TestAReceiptThatALostPodLeftBehindIsNoFinding(t *testing.T) {
	n := outlives(true)
	n.free(1)
	n.owner.Record.State.Quarantine = assignment.Quarantine{{From: 1, To: 1, Epoch: 100}}
	if r := check(n); !r.OK || n.view().Slots[1].State != Quarantine {
		t.Errorf("in quarantine: found %v, the row is %+v", briefs(r), n.view().Slots[1])
	}
	n.owner.Record.State.Quarantine = nil
	n.name(1, "x")
	n.lock("x", 1, 200)
	if r := check(n); !r.OK || n.view().Slots[1].State != Held || r.Held != 3 {
		t.Errorf("given away: found %v, %d held, the row is %+v", briefs(r), r.Held, n.view().Slots[1])
	}
}

// What a lost pod that is out of the map left on itself locks nothing, so the pod that has its id now is the only one.
func TestALostPodsReceiptLocksNoPartitions(t *testing.T) {
	n := dividedPods()
	n.owner.Record.State.FenceAfter = 30 * time.Second
	n.edit("b", func(p *pod) {
		p.Terminating, p.Deadline, p.Receipt.FenceAfter = true, n.now.Add(-time.Minute), 30*time.Second
	})
	next := n.pods["b"]
	next.Name, next.Terminating, next.Deadline = "d", false, time.Time{}
	next.UID = "uid-d"
	n.pods["d"] = next
	n.owner.Record.State.Slots[1] = "d"
	if uids := n.owner.Record.State.UIDs; uids != nil {
		uids[1] = assignment.ShortUID("uid-d")
	}
	for _, f := range check(n).Findings {
		t.Errorf("found %s: %s", f.Kind, f.Detail)
	}
	for _, r := range n.partitionView().Ranges {
		if r.State != Owned || r.Pod == "b" {
			t.Errorf("a row says %+v", r)
		}
	}
}
