package proposal

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// revisionChange plays a rolling update step by step: old pods hold all slots and hand them over, new pods start or never do.
type revisionChange struct {
	t     *rapid.T
	count int
	limit int // maxUnavailable
	state assignment.State
	pods  []Pod
	// stuck are new pods that never start, available those that work.
	stuck, available map[string]bool
	// collected are the slots that old pods gave for a request.
	collected map[int]bool
}

func newRevisionChange(t *rapid.T) *revisionChange {
	r := &revisionChange{
		t: t, count: rapid.IntRange(1, 5).Draw(t, "count"), limit: rapid.IntRange(0, 2).Draw(t, "maxUnavailable"),
		state: assignment.State{Slots: slots{}}, stuck: map[string]bool{}, available: map[string]bool{}, collected: map[int]bool{},
	}
	for id := range r.count {
		old := pod(fmt.Sprintf("old-%d", id), 9).says(receipt.Locks, id)
		old.Controller, old.Receipt.HandsOver = "rs-2", true
		r.state.Slots[id] = old.Name
		r.pods = append(r.pods, old)
	}
	for i := range r.count + rapid.IntRange(0, 2).Draw(t, "surge") {
		name := fmt.Sprintf("new-%d", i)
		r.pods = append(r.pods, pod(name, 5-i%5))
		r.stuck[name] = rapid.IntRange(0, 2).Draw(t, "stuck") == 0
	}
	return r
}

func (r *revisionChange) isNew(p *Pod) bool { return p.Controller == "rs-1" }

// plan has one pod plan and write.
func (r *revisionChange) plan(me *Pod) {
	in := Input{Count: r.count, State: r.state, Pods: slices.Clone(r.pods), Me: me.Name, Now: t0}
	if r.isNew(me) {
		in.Rollout = Rollout{Current: true, MaxUnavailable: r.limit, Available: len(r.available)}
	}
	d := Plan(in)
	r.state = after(in, d)
	if me.Receipt.State == receipt.None || me.Receipt.State == receipt.GaveUp {
		me.Receipt.State = receipt.Waits
	}
}

// act has the pod do what it may do now.
func (r *revisionChange) act(me *Pod) {
	id, has := r.state.Slots.Of(me.Name)
	_, asked := r.state.Handover[id]
	switch {
	case r.stuck[me.Name]:
	case !has:
		r.plan(me)
	case !me.Receipt.Locked():
		*me = me.says(receipt.Locks, id)
	case r.isNew(me):
		r.available[me.Name] = true
	case asked:
		*me = me.says(receipt.GaveUp, receipt.NoID)
		me.Receipt.Rank, me.Receipt.HandsOver = gaveUp, false
		r.collected[id] = true
		r.plan(me)
	}
}

// silenced returns the slots that no pod works under because the new revision asked for them, or is about to.
func (r *revisionChange) silenced() map[int]bool {
	out := map[int]bool{}
	for id := range r.collected {
		if !r.available[r.state.Slots[id]] {
			out[id] = true
		}
	}
	for id := range r.state.Handover {
		out[id] = true
	}
	return out
}

// However many new pods never start, at no moment more old pods' work was stopped for them than may be unavailable.
func TestARevisionThatDoesNotWorkStopsNoMoreThanMayBeUnavailable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRevisionChange(t)
		for range 60 {
			i := rapid.IntRange(0, len(r.pods)-1).Draw(t, "pod")
			if !r.isNew(&r.pods[i]) && rapid.IntRange(0, 9).Draw(t, "deleted") == 0 {
				r.pods = slices.Delete(r.pods, i, i+1)
				continue
			}
			r.act(&r.pods[i])
			if most := max(1, r.limit); len(r.silenced()) > most {
				t.Fatalf("the work under %v was stopped, %d may be: %+v", r.silenced(), most, r.state)
			}
		}
	})
}

// New pods that never start keep no slot from those that do: where old pods hand over one after the other, everybody who runs works in the end.
func TestWhoRunsGetsASlotBesidePodsThatNeverStart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRevisionChange(t)
		for range 20 * len(r.pods) {
			for i := range r.pods {
				r.act(&r.pods[i])
			}
		}
		running := 0
		for i := range r.pods {
			if r.isNew(&r.pods[i]) && !r.stuck[r.pods[i].Name] {
				running++
			}
		}
		if want := min(r.count, running); len(r.available) != want {
			t.Fatalf("%d new pods work, %d could: %+v", len(r.available), want, r.state)
		}
	})
}
