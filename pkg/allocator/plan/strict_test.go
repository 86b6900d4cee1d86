package plan

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

func TestAQuarantinedSlotIsGivenToNobody(t *testing.T) { property(t, aQuarantinedSlotIsGivenToNobody) }

func aQuarantinedSlotIsGivenToNobody(t rapid.TB, in Input, d Decision) {
	t.Helper()
	for _, filled := range d.Filled {
		if p := podNamed(in, filled.Pod); p.locks() && p.Receipt.ID == filled.ID {
			continue // restored
		}
		if epoch, ok := in.State.Quarantine.Since(filled.ID); ok && (in.Trust.Believed()) && !in.Served[epoch] && d.FenceAfter > 0 {
			t.Fatalf("slot %d is given to %s out of quarantine %d", filled.ID, filled.Pod, epoch)
		}
		if d.FenceAfter > 0 && !in.Trust.Believed() {
			t.Fatalf("slot %d is given to %s although nobody knows who had it", filled.ID, filled.Pod)
		}
		for _, f := range d.Freed {
			if d.FenceAfter > 0 && f.ID == filled.ID && f.Cause == CauseDead && !in.Ended[f.ID] {
				t.Fatalf("slot %d of %s, which vanished, is given to %s", f.ID, f.Pod, filled.Pod)
			}
		}
	}
}

func TestStrictModeIsWrittenDown(t *testing.T) { property(t, strictModeIsWrittenDown) }

func strictModeIsWrittenDown(t rapid.TB, in Input, d Decision) {
	t.Helper()
	next := after(in, d)
	for id := range next.Slots {
		if _, ok := next.Quarantine.Since(id); ok {
			t.Fatalf("slot %d has a holder and is in quarantine", id)
		}
	}
	for id, name := range next.Slots {
		if p := podNamed(in, name); d.Next != nil && in.Trust == assignment.Clean && in.State.Slots[id] == name && !p.locks() && next.FenceAfter < in.State.FenceAfter {
			t.Fatalf("fence-after fell from %s to %s, and what %s in slot %d needs is not known", in.State.FenceAfter, next.FenceAfter, name, id)
		}
	}
	if d.Next != nil && (in.Trust.Believed()) && len(next.Quarantine) > 0 && next.FenceAfter < in.State.FenceAfter {
		t.Fatalf("fence-after fell from %s to %s during a quarantine", in.State.FenceAfter, next.FenceAfter)
	}
	if _, has := next.Slots.Of(in.Me); d.Next != nil && has && next.FenceAfter < in.FenceAfter {
		t.Fatalf("the owner says fence-after %s, me %s", next.FenceAfter, in.FenceAfter)
	}
}

// genStrict draws what strict mode adds.
func genStrict(t *rapid.T, in *Input) {
	fences := rapid.SampledFrom([]time.Duration{0, 0, 5 * time.Second, 30 * time.Second})
	in.FenceAfter, in.State.FenceAfter = fences.Draw(t, "fence"), fences.Draw(t, "ownersFence")
	if in.Trust != assignment.Clean && rapid.Bool().Draw(t, "untracked") {
		in.Trust = assignment.Untracked
	}
	in.Served, in.Ended = map[int64]bool{1: rapid.Bool().Draw(t, "served1"), 2: rapid.Bool().Draw(t, "served2")}, map[int]bool{}
	for id := range 12 {
		if _, taken := in.State.Slots[id]; !taken && rapid.IntRange(0, 3).Draw(t, "quarantined") == 0 {
			in.State.Quarantine = in.State.Quarantine.With(id, id, rapid.Int64Range(1, 2).Draw(t, "since"))
		}
		in.Ended[id] = rapid.Bool().Draw(t, "ended")
	}
}
