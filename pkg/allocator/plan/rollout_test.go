package plan

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
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
		name := fmt.Sprintf("old-%d", id)
		r.state.Slots[id] = name
		r.pods = append(r.pods, old(name, id))
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
func (r *revisionChange) plan(me *Pod, intent Intent) {
	in := Input{Count: r.count, State: r.state, Trust: assignment.Clean, Pods: slices.Clone(r.pods), Me: me.Name, Intent: intent, Now: t0}
	if r.isNew(me) {
		n := 0
		for name := range r.available {
			if r.available[name] {
				n++
			}
		}
		in.Rollout = current(r.limit, n)
	}
	d := Plan(in)
	r.state = after(in, d)
	_, has := r.state.Slots.Of(me.Name)
	if me.Receipt == nil && (d.HandOver.AskedFor(me.Name) || (!has && d.Scarce)) {
		waits(me)
	}
}

// step has one pod do something that it may do now.
func (r *revisionChange) step() {
	i := rapid.IntRange(0, len(r.pods)-1).Draw(r.t, "pod")
	me := &r.pods[i]
	id, has := r.state.Slots.Of(me.Name)
	_, asked := r.state.Handover[id]
	switch {
	case r.isNew(me) && r.stuck[me.Name]:
	case r.isNew(me) && !has:
		r.plan(me, Claim)
	case r.isNew(me) && !me.locks():
		holds(id)(me)
	case r.isNew(me):
		r.available[me.Name] = true
	case has && asked:
		gives(id)(me)
		r.collected[id] = true
		r.plan(me, Move)
	case rapid.IntRange(0, 5).Draw(r.t, "deleted") == 0:
		r.pods = slices.Delete(r.pods, i, i+1)
	default:
		r.plan(me, Claim)
	}
}

// silenced returns the slots that nobody works under because the new revision asked for them, or is about to.
func (r *revisionChange) silenced() map[int]bool {
	out := map[int]bool{}
	for id := range r.collected {
		out[id] = !r.available[r.state.Slots[id]]
	}
	for id := range r.state.Handover {
		out[id] = true
	}
	for id, yes := range out {
		if !yes {
			delete(out, id)
		}
	}
	return out
}

// However many new pods never start, at no moment more old pods' work was stopped for them than may be unavailable.
func TestARevisionThatDoesNotWorkStopsNoMoreThanMayBeUnavailable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newRevisionChange(t)
		for range 60 {
			r.step()
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
			r.round()
		}
		working := 0
		for _, p := range r.pods {
			if r.isNew(&p) && r.available[p.Name] {
				working++
			}
		}
		running := 0
		for i := range r.pods {
			if r.isNew(&r.pods[i]) && !r.stuck[r.pods[i].Name] {
				running++
			}
		}
		if want := min(r.count, running); working != want {
			t.Fatalf("%d new pods work, %d could: %+v", working, want, r.state)
		}
	})
}

// round has every pod do what it may do now, but no pod is deleted.
func (r *revisionChange) round() {
	for i := range r.pods {
		me := &r.pods[i]
		id, has := r.state.Slots.Of(me.Name)
		_, asked := r.state.Handover[id]
		switch {
		case r.stuck[me.Name]:
		case r.isNew(me) && !has:
			r.plan(me, Claim)
		case r.isNew(me) && !me.locks():
			holds(id)(me)
		case r.isNew(me):
			r.available[me.Name] = true
		case has && asked:
			gives(id)(me)
			r.plan(me, Move)
		}
	}
}
