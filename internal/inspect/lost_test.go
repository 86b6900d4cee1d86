package inspect

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// outlives has pod b, with id 1, outlive its grace period by a minute, while pod x waits.
func outlives(strict bool) snapshot {
	n := settledPods(3)
	n.now = time.Unix(1000, 0)
	n.add("x")
	n.edit("b", func(p *pod) {
		p.Terminating, p.Deadline, p.node, p.Receipt.Strict = true, n.now.Add(-time.Minute), "node-1", strict
	})
	if strict {
		n.leases.held = map[int]store.Lease{1: lease(1, "b", n.now.Add(-30*time.Second))}
	}
	return n
}

// lease is a Lease of 40 s, which counts for 43 s.
func lease(id int, pod string, renewed time.Time) store.Lease {
	return store.Lease{ID: id, Pod: pod, Holder: "uid-" + pod, Lasts: 40 * time.Second, Renewed: renewed, Version: "1"}
}

func TestAPodThatOutlivesItsGracePeriodIsNamedWithTheWayOut(t *testing.T) {
	for name, tc := range map[string]struct {
		strict bool
		says   []string
	}{
		"strict mode":  {true, []string{"id 1", "pod b", "1m0s", "node node-1", "when its Lease counts no more, at 1970-01-01T00:16:53Z by its renewTime"}},
		"default mode": {false, []string{"id 1", "pod b", "by 1m0s", "node node-1", "taint it node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"}},
	} {
		n := outlives(tc.strict)
		report := reported(n)
		if got := briefs(report); !slices.Equal(got, []brief{{map[bool]Kind{true: LostStrict, false: HeldByLost}[tc.strict], 1, "b"}}) {
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
	if r := reported(n); !r.OK || n.view().Slots[1].State != Held {
		t.Errorf("found %v, the row is %+v", briefs(r), n.view().Slots[1])
	}
}

// The node cannot take the receipt away. The Lease locks the slot for as long as it lasts.
func TestAReceiptThatALostPodLeftBehindIsNoFinding(t *testing.T) {
	n := outlives(true)
	n.name(1, "x")
	if r := reported(n); !r.OK || n.view().Slots[1].State != Proposed || r.Held != 2 {
		t.Errorf("proposed: found %v, %d held, the row is %+v", briefs(r), r.Held, n.view().Slots[1])
	}
	n.lock("x", 1)
	if r := reported(n); !r.OK || n.view().Slots[1].State != Held || r.Held != 3 {
		t.Errorf("taken: found %v, %d held, the row is %+v", briefs(r), r.Held, n.view().Slots[1])
	}
}

// What a lost pod that is out of the map left on itself locks nothing, so the pod that has its id now is the only one.
func TestALostPodsReceiptLocksNoPartitions(t *testing.T) {
	n := dividedPods()
	n.edit("b", func(p *pod) {
		p.Terminating, p.Deadline, p.Receipt.Strict = true, n.now.Add(-time.Minute), true
	})
	next := n.pods["b"]
	next.Name, next.Terminating, next.Deadline = "d", false, time.Time{}
	next.UID = "uid-d"
	n.pods["d"] = next
	n.name(1, "d")
	for _, f := range reported(n).Findings {
		t.Errorf("found %s: %s", f.Kind, f.Detail)
	}
	for _, r := range n.partitionView().Ranges {
		if r.State != Owned || r.Pod == "b" {
			t.Errorf("a row says %+v", r)
		}
	}
}
