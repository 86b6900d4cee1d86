package inspect

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

func heldTwice(f *facts) (found []about) {
	for id, lockers := range f.lockers {
		for _, p := range lockers[1:] {
			found = append(found, on(id, p.Name, words{theOther: lockers[0].Name}))
		}
	}
	return found
}

// mismatches finds locks that contradict the map. It ignores a missing or damaged map, which is a finding of its own.
func mismatches(f *facts) (found []about) {
	if f.wiped() || f.broken(assignment.Key) {
		return nil
	}
	for id := range f.lockers {
		has, _ := f.holder(id)
		_, entry := f.state.Slots.Of(has)
		other, why := f.state.Slots[id], f.death(f.state.Slots[id])
		switch {
		case other == has || other == "" && entry:
		case other == "":
			found = append(found, on(id, has, words{theOther: "no pod"}))
		case why != "":
			found = append(found, on(id, has, words{theOther: "pod " + other + ", which is " + why}))
		default:
			found = append(found, on(id, has, words{theOther: "pod " + other}))
		}
	}
	return found
}

// entry is an entry of the map whose slot no live pod locks. death is why its pod is dead, or "" if it lives.
type entry struct {
	id    int
	pod   pod
	death string
}

// entries returns the entries for which is returns true, among those whose slots no live pod locks. is also returns the words for the sentence.
func (f *facts) entries(is func(e entry) (words, bool)) (found []about) {
	for _, id := range f.state.Slots.IDs() {
		name := f.state.Slots[id]
		if with, so := is(entry{id, f.pods[name], f.death(name)}); so && len(f.lockers[id]) == 0 {
			found = append(found, on(id, name, with))
		}
	}
	return found
}

// dead reports whether the entry names a dead pod. If the map was copied, a pod that does not exist is not counted, because its name is another owner's.
func (f *facts) dead(e entry) bool { return e.death != "" && (f.copied == "" || e.death != gone) }

// idle reports whether no live pod could remove a dead pod's entry from the map, and no pod needs the slot.
func (f *facts) idle(e entry) bool {
	return len(f.lockers) == 0 && (e.id >= f.owner.Count || f.rollout.finished)
}

func deadHolders(f *facts) []about {
	return f.entries(func(e entry) (words, bool) { return words{"why": e.death}, f.dead(e) && !f.idle(e) })
}

func idleEntries(f *facts) []about {
	found := f.entries(func(e entry) (words, bool) { return nil, f.dead(e) && f.idle(e) })
	ids := make([]string, 0, len(found))
	for _, a := range found {
		ids = append(ids, number(*a.id))
	}
	return some(len(ids) > 0, about{with: words{"ids": few(ids)}})
}

func otherIDs(f *facts) []about {
	return f.entries(func(e entry) (words, bool) {
		locked := e.pod.Receipt.Slot()
		return words{theOther: number(locked)}, e.death == "" && locked >= 0 && locked != e.id && !f.lost(e.id)
	})
}

// lost reports whether the map gives the slot to a pod that is lost.
func (f *facts) lost(id int) bool {
	name := f.state.Slots[id]
	return id < f.owner.Count && f.death(name) == "" && f.overdue(f.pods[name])
}

// lostHolders finds the slots of lost pods, either those in strict mode or the others.
func lostHolders(strict bool) func(*facts) []about {
	return func(f *facts) (found []about) {
		for id, name := range f.state.Slots {
			p := f.pods[name]
			if !f.lost(id) || p.Receipt.Strict != strict {
				continue
			}
			when := "when its Lease counts no more"
			if l, held := f.leases.held[id]; held {
				when += ", at " + ends(l).UTC().Format(time.RFC3339) + " by its renewTime"
			}
			found = append(found, on(id, name, words{"node": p.node, "over": short(f.now.Sub(p.Deadline)), "when": when}))
		}
		return found
	}
}

// untaken finds live pods that do not take the slot that the map gives them. The map has proposed it at least since it was last written.
func untaken(byController bool) func(*facts) []about {
	return func(f *facts) []about {
		since, known := f.unchanged()
		return f.entries(func(e entry) (words, bool) {
			p, patience := e.pod, startsWithin
			if p.sign() {
				patience = settlesWithin
			}
			takes := e.death == "" && f.refused[p.Name] == "" && !f.lost(e.id) && p.Receipt.Slot() < 0 && p.takes(e.id) != byController && len(p.gates) == 0 && f.resting(e.id) == "" &&
				(!p.byAgent || p.elsewhere.State != receipt.Locks) // that is a finding of its own
			return words{theTime: short(since)}, takes && known && since >= patience && (!p.Receipt.Strict || f.bars(e.id, p.Name) == "")
		})
	}
}

// unheld finds the ids that waiting pods of some kind could have. The planner's own function finds them: a second version of its rules missed two ways in which
// a pod gets its ordinal. It plans with unlimited room, because a plan with the owner's real room would hide ids.
func unheld(of func(pod) bool) func(*facts) []about {
	return func(f *facts) (found []about) {
		state := f.state
		for _, gaveUp := range []bool{false, true} { // pods that gave up their slot come last
			waiters := slices.DeleteFunc(slices.Clone(f.waiters), func(p pod) bool { return p.gaveUp() != gaveUp || !f.claims(p) })
			if len(waiters) == 0 {
				continue
			}
			d := proposal.Plan(f.willing(waiters, state))
			for _, filled := range d.Filled {
				if p := f.pods[filled.Pod]; f.free(filled.ID) && of(p) {
					found = append(found, on(filled.ID, filled.Pod, nil))
				}
			}
			if d.Next != nil {
				state = *d.Next
			}
		}
		return found
	}
}

// willing returns the input for a plan of one of the waiters, as if they were siblings, all ran, and nothing kept them from a free slot. Dead holders keep
// their slots, because these are findings of their own.
func (f *facts) willing(waiters []pod, state assignment.State) proposal.Input {
	in := proposal.Input{
		Count: f.owner.Count, State: state, Me: waiters[0].Name, Room: assignment.Room{All: math.MaxInt}, Pods: make([]proposal.Pod, 0, len(f.pods)),
		Partitions: proposal.Division{Unchanged: true},
	}
	for _, p := range waiters {
		p.Controller, p.Receipt = "waiters", receipt.Receipt{State: receipt.Waits, Share: receipt.Nothing()}
		in.Pods = append(in.Pods, p.Pod)
	}
	for _, lockers := range f.lockers {
		for _, p := range lockers {
			p.Receipt.Strict = false // a plan would take the slot from a strict pod that is lost
			in.Pods = append(in.Pods, p.Pod)
		}
	}
	for id, name := range state.Slots {
		p := f.pods[name]
		switch dead := f.death(name) != ""; {
		case dead && len(f.lockers[id]) == 0:
			in.Pods = append(in.Pods, proposal.Pod{
				Name: "the dead holder of " + number(id), Terminating: true, Receipt: receipt.Receipt{State: receipt.Locks, Share: receipt.Share{ID: id}},
			})
		case !dead && p.Receipt.Slot() < 0 && p.Receipt.State != receipt.GaveUp:
			in.Pods = append(in.Pods, p.Pod)
		}
	}
	return in
}

// silent finds pods that run idalloc although neither they nor the owner have a trace of it.
func silent(f *facts) []about {
	pods := f.those(func(p pod) bool { return p.live() && p.runs && f.now.Sub(p.Created) >= startsWithin })
	if f.traced() || len(pods) == 0 {
		return nil
	}
	return []about{{pod: pods[0], with: words{"pods": few(pods)}}}
}

func unused(f *facts) []about { return some(!f.traced() && len(silent(f)) == 0, about{}) }

// traced reports whether the owner or a pod has a trace of idalloc.
func (f *facts) traced() bool {
	return f.owner.Record.Present || len(f.those(func(p pod) bool { return p.Receipt.State != receipt.None || f.strays(p) || p.byController || p.byAgent })) > 0
}

func leasesUnseen(f *facts) []about {
	return some(f.leases.denied != nil && f.strict(), about{with: words{"why": fmt.Sprint(f.leases.denied)}})
}

func fencedHolders(f *facts) (found []about) {
	for _, id := range f.unrenewed() {
		l, why := f.leases.held[id], "It has no contact with the API server, or that refuses its renewals: see its log."
		if refused, known := f.leases.refused[id]; known {
			why = "The API server refuses its renewals (" + refused + "). Repair what refuses them: the pod takes the id again by itself."
		}
		found = append(found, on(id, l.Pod, words{theTime: l.Renewed.UTC().Format(time.RFC3339), "why": why}))
	}
	return found
}

func leasesThatBar(f *facts) (found []about) {
	for id, l := range f.leases.held {
		name, _ := f.holder(id)
		if bars := f.bars(id, name); bars != "" && !f.lives(l) {
			found = append(found, on(id, "", words{"bars": bars}))
		}
	}
	return found
}
