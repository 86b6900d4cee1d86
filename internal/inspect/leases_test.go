package inspect

import (
	"errors"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/test/apifake"
)

// strictPods are settledPods in strict mode, with Leases that were renewed ten seconds ago.
func strictPods() snapshot {
	n := settledPods(3)
	n.now = time.Unix(1000, 0)
	n.leases.held = map[int]store.Lease{}
	for id, name := range n.owner.Record.State.Slots {
		n.edit(name, func(p *pod) { p.Receipt.Strict = true })
		n.leases.held[id] = lease(id, name, n.now.Add(-10*time.Second))
	}
	return n
}

func TestTheWideTableShowsLeases(t *testing.T) {
	n := strictPods()
	n.free(0)
	n.edit("b", func(p *pod) { p.UID = "another" })
	n.leases.held[2] = lease(2, "c", n.now.Add(-time.Minute))
	n.add("d")
	n.name(3, "d")
	for id, want := range []string{"of a 33s", "of b 33s", "over", "-"} {
		if cells := n.view().Slots[id].Cells(n.now); cells[len(cells)-1] != want {
			t.Errorf("id %d: %q, want %q", id, cells[len(cells)-1], want)
		}
	}
	var text strings.Builder
	if err := SlotColumns().Write(&text, n.view().Rows(n.now), true, true); err != nil || !strings.Contains(text.String(), "LEASE") {
		t.Errorf("%s, %v", text.String(), err)
	}
}

func TestLeasesAreNoFailure(t *testing.T) {
	for name, tc := range map[string]struct {
		change      func(n *snapshot)
		warns, says string
	}{
		"all are renewed": {change: func(*snapshot) {}},
		"the holder is gone, and a pod waits": {
			change: func(n *snapshot) { n.free(1); n.add("z") },
			says:   "the Lease of id 1 is that of pod b (gone) and counts until 1970-01-01T00:17:13Z, by its renewTime: another strict pod takes the id after that",
		},
		"the pod that is to have it waits for the Lease": {
			change: func(n *snapshot) {
				n.free(1)
				n.add("z")
				n.name(1, "z")
				n.edit("z", func(p *pod) { p.Receipt.State, p.Receipt.Strict = receipt.Waits, true })
				n.written = n.now.Add(-time.Hour)
			},
			says: "another strict pod takes the id after that",
		},
		"an earlier pod of the name had it": {
			change: func(n *snapshot) {
				n.edit("b", func(p *pod) { p.UID, p.Receipt.Share = "another", receipt.Nothing() })
				n.unlock("b")
			},
			says: "pod b (an earlier pod of that name)",
		},
		"a pod without contact": {
			change: func(n *snapshot) { n.leases.held[1] = lease(1, "b", n.now.Add(-time.Minute)) },
			warns:  "pod b has not renewed the Lease of id 1 since 1970-01-01T00:15:40Z",
		},
		"it may not look": {
			change: func(n *snapshot) { n.leases.held, n.leases.denied = nil, errors.New("no") },
			says:   "verify could not look at the Leases of strict mode: no",
		},
		"it may not look, and no pod is strict": {
			change: func(n *snapshot) { *n = settledPods(3); n.leases.denied = errors.New("no") },
		},
	} {
		n := strictPods()
		tc.change(&n)
		r := reported(n)
		if !r.OK {
			t.Errorf("%s: found %+v", name, r.Findings)
		}
		if (tc.warns == "") != (len(r.Warnings) == 0) || (tc.says == "") != (len(r.Notes) == 0) {
			t.Errorf("%s: it warns %q and notes %q", name, r.Warnings, r.Notes)
			continue
		}
		saysAll(t, name, slices.Concat(r.Warnings, r.Notes), slices.DeleteFunc([]string{tc.warns, tc.says}, func(s string) bool { return s == "" }))
	}
}

// A Lease of a free slot that counts no more keeps no pod from it.
func TestALeaseThatIsOverHidesNoFreeID(t *testing.T) {
	n := strictPods()
	n.free(1)
	n.leases.held[1] = lease(1, "b", n.now.Add(-time.Minute))
	n.add("z")
	if got := briefs(reported(n)); !slices.Equal(got, []brief{{Unheld, 1, "z"}}) {
		t.Errorf("found %v", got)
	}
}

func TestVerifyDoesNotNeedToListLeases(t *testing.T) {
	held := assignment.State{Slots: assignment.Slots{0: "worker-a"}}
	holder := apifake.Holding("worker-a", 0)
	text := receipt.Receipt{UID: "worker-a-uid", Owner: "Deployment/worker", State: receipt.Locks, Share: receipt.Share{ID: 0}, Strict: true, Write: "1"}.Encode()
	holder.SetAnnotations(map[string]string{receipt.Key: text})
	for denied, notes := range map[string]int{"leases": 1, "": 0} {
		s := asking(t, func(r *http.Request) bool { return path.Base(r.URL.Path) == denied }, apifake.Assigned(1, held), holder)
		ref := store.Ref{APIVersion: apifake.Apps, Kind: store.Deployment, Namespace: apifake.Namespace, Name: apifake.Worker}
		if denied == "" {
			_, err := s.PutLease(t.Context(), ref, store.Lease{ID: 0, Holder: "worker-a-uid", Pod: "worker-a", Lasts: 40 * time.Second, Renewed: apifake.Born()})
			if err != nil {
				t.Fatal(err)
			}
		}
		r, err := Verify(t.Context(), s, ref)
		if err != nil || !r.OK || r.Held != 1 || len(r.Notes) != notes {
			t.Errorf("%q is denied: %+v, %v", denied, r, err)
		}
		v, err := Read(t.Context(), s, ref)
		if err != nil || (v.Slots[0].Lease == nil) != (denied != "") || v.Slots[0].State != Held {
			t.Errorf("%q is denied: %+v, %v", denied, v, err)
		}
	}
}
