package plan

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// genWithLost draws an input in which some pods are lost.
func genWithLost(trust assignment.Trust) *rapid.Generator[Input] {
	return rapid.Custom(func(t *rapid.T) Input {
		in := genInput().Draw(t, "in")
		in.Trust, in.State.FenceAfter, in.Ended = trust, time.Hour, nil
		for i := range in.Pods {
			p := &in.Pods[i]
			if p.locks() && p.Name != in.Me && rapid.Bool().Draw(t, "lost") {
				p.Receipt.FenceAfter, p.Receipt.Epoch = time.Minute, 1
				p.Terminating, p.Lost = true, true
			}
		}
		return in
	})
}

// In a clean map a lost pod is as good as gone, and whoever vanished leaves a slot in quarantine.
func TestInACleanMapALostPodIsAsGoodAsGone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genWithLost(assignment.Clean).Draw(t, "in")
		without := in
		without.Pods = slices.DeleteFunc(slices.Clone(in.Pods), func(p Pod) bool { return p.Lost })
		got, want := after(in, Plan(in)), after(without, Plan(without))
		if got.FenceAfter >= want.FenceAfter {
			want.FenceAfter = got.FenceAfter // the receipt of a lost pod still says it
		}
		if !got.SameContent(want) && !sameButEpochs(got, want) {
			t.Fatalf("with lost pods %+v\nwithout them %+v", got, want)
		}
	})
}

// sameButEpochs compares states whose epochs follow from other receipts.
func sameButEpochs(a, b assignment.State) bool {
	dated := func(s assignment.State, epoch int64) assignment.State {
		s.Quarantine = slices.Clone(s.Quarantine)
		for i := range s.Quarantine {
			if s.Quarantine[i].Epoch == epoch {
				s.Quarantine[i].Epoch = 0
			}
		}
		return s
	}
	return dated(a, a.Epoch).SameContent(dated(b, b.Epoch))
}

func TestInAMapThatIsNotCleanALostPodsSlotIsNobodysAndInQuarantine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genWithLost(assignment.Foreign).Draw(t, "in")
		d := Plan(in)
		next := after(in, d)
		for _, p := range in.Pods {
			if !p.Lost {
				continue
			}
			if name, taken := next.Slots[p.Receipt.ID]; taken {
				t.Fatalf("slot %d of %s, which is lost, is %s's", p.Receipt.ID, p.Name, name)
			}
			if since, ok := next.Quarantine.Since(p.Receipt.ID); d.Next != nil && (!ok || since != next.Epoch) {
				t.Fatalf("slot %d of %s, which is lost, is not in quarantine since now", p.Receipt.ID, p.Name)
			}
		}
	})
}

func TestOnAMapThatNobodyTracksNoPodIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genWithLost(assignment.Untracked).Draw(t, "in")
		alive := in
		alive.Pods = slices.Clone(in.Pods)
		for i := range alive.Pods {
			alive.Pods[i].Lost = false
		}
		if got, want := after(in, Plan(in)), after(alive, Plan(alive)); !got.SameContent(want) {
			t.Fatalf("with lost pods %+v\nwith live ones %+v", got, want)
		}
	})
}

func TestNobodyIsLostWithoutAReceiptThatSaysWhenItsWorkStops(t *testing.T) {
	strict := pod("a", 1)
	strict.Terminating, strict.Lost = true, true
	holdsSince(0, 1)(&strict)
	strict.Receipt.FenceAfter = time.Minute
	for name, change := range map[string]func(p *Pod){
		"it has no receipt":                func(p *Pod) { p.Receipt = nil },
		"its receipt is not strict":        func(p *Pod) { p.Receipt.FenceAfter = 0 },
		"somebody damaged its fence-after": func(p *Pod) { p.Receipt.FenceAfter = -1 },
		"it gave its slot up":              func(p *Pod) { p.Receipt.GaveUp = true },
		"it waits":                         func(p *Pod) { p.Receipt.Waits = true },
		"it is not being deleted":          func(p *Pod) { p.Terminating = false },
		"":                                 func(*Pod) {},
	} {
		p := strict
		receipt := *strict.Receipt
		p.Receipt = &receipt
		change(&p)
		if got := p.MayBeLost(); got != (name == "") {
			t.Errorf("%q: may be lost: %t", name, got)
		}
	}
}
