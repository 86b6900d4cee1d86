package model

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/idalloc/idalloc/controller/internal/decision"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
)

// there is the other owner.
var there = identity.Owner{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "there"} //nolint:gochecknoglobals // a constant that Go cannot express

// model is a budget with what is known of the shipped decisions.
type model struct {
	budget

	looks    map[[mostPods]object][]action
	confirms map[confirmed][][mostPods]do
	wishes   map[tenure][]action
	rests    map[settled]string
}

func newModel(b budget) *model {
	return &model{
		budget: b, looks: map[[mostPods]object][]action{}, confirms: map[confirmed][][mostPods]do{}, wishes: map[tenure][]action{}, rests: map[settled]string{},
	}
}

// action is something to be done about a pod.
type action struct {
	do   do
	pod  int
	slot int8
	// there says that a lock is of the other owner's slot.
	there bool
	// confirm says that T3 is to be done.
	confirm bool
	peer    peerAction
}

// lock is what a list shows of a pod. same says that it shows the pod and the bytes that the view has.
type lock struct {
	there, begun, same, sameUID bool
	slot                        int8
}

type confirmed struct {
	view  [mostPods]object
	locks [mostPods]lock
}

// canonical drops from a view what decisions do not depend on.
func canonical(view [mostPods]object) [mostPods]object {
	for i := range view {
		if view[i].confirmed = min(1, view[i].confirmed^view[i].bytes); view[i].confirmed > 0 {
			view[i].refused = false
		}
		view[i].bytes, view[i].generation = 0, 0
	}
	return view
}

// look returns all that a controller may do by what it sees, whatever the owner says.
func (m *model) look(view [mostPods]object) []action {
	view = canonical(view)
	if known, there := m.looks[view]; there {
		return known
	}
	var out []action
	add := func(a action) {
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	for count := 1; count <= m.slots; count++ {
		for slots := range m.maps(view) {
			d := decision.Decide(m.world(view, nil, assignment.State{Slots: slots}, count))
			for _, t := range d.Take {
				add(action{do: take, pod: m.find(view, t.Pod), slot: int8(t.ID), there: t.Under == there.String()}) //nolint:gosec // a slot below 3
			}
			for _, name := range d.Withdraw {
				add(action{do: withdraw, pod: m.find(view, name)})
			}
			if d.Confirm || len(d.Remove) > 0 {
				add(action{confirm: true})
			}
		}
	}
	for i, o := range view {
		for slot := range m.slots {
			if m.wild && m.central(i) && o.gated && !o.term && o.id == noID && o.state != locks {
				add(action{do: take, pod: i, slot: int8(slot)})
			}
		}
	}
	m.looks[view] = out
	return out
}

// maps yields every map of the owner: each slot is proposed to no pod, or to any of them.
func (m *model) maps(view [mostPods]object) func(func(assignment.Slots) bool) {
	return func(yield func(assignment.Slots) bool) {
		all := 1
		for range m.slots {
			all *= m.pods + 1
		}
		for n := range all {
			slots := assignment.Slots{}
			for slot := range m.slots {
				if i := n % (m.pods + 1); i < m.pods {
					slots[slot] = m.name(i, view[i])
				}
				n /= m.pods + 1
			}
			if !yield(slots) {
				return
			}
		}
	}
}

// confirm returns what may be to be done after T3, for each count.
func (m *model) confirm(view [mostPods]object, listed [mostPods]lock) [][mostPods]do {
	key := confirmed{canonical(view), listed}
	if known, there := m.confirms[key]; there {
		return known
	}
	var out [][mostPods]do
	for count := 1; count <= m.slots; count++ {
		if d := decision.Decide(m.world(key.view, nil, assignment.State{}, count)); !d.Confirm && len(d.Remove) == 0 {
			continue
		}
		var todo [mostPods]do
		if m.without == noList || m.without == unlisted {
			for i := range m.pods {
				var alone [mostPods]lock
				alone[i] = listed[i]
				if todo[i] = m.verdict(key.view, alone, count)[i]; m.without == unlisted && !m.agent(i) {
					todo[i] = m.verdict(key.view, listed, count)[i]
				}
			}
		} else {
			todo = m.verdict(key.view, listed, count)
		}
		out = append(out, todo)
	}
	m.confirms[key] = out
	return out
}

func (m *model) verdict(view [mostPods]object, listed [mostPods]lock, count int) (todo [mostPods]do) {
	d := decision.Decide(m.world(view, m.list(view, listed), assignment.State{}, count))
	for _, b := range d.Begin {
		todo[m.find(view, b.Pod)] = beginAgain
		if b.Gated {
			todo[m.find(view, b.Pod)] = begin
		}
	}
	for _, name := range d.Withdraw {
		todo[m.find(view, name)] = withdraw
	}
	for _, p := range d.Propose {
		if i := m.find(view, p.Pod); p.Text != "" {
			if todo[i] = confirm; p.Next.Confirmed.Slot {
				todo[i] = refuse
			}
		}
	}
	for _, r := range d.Remove {
		todo[m.find(view, r.Pod)] = remove
	}
	return todo
}

// listed is what T3 shows. It finds what pods lock of another owner if the view shows a pod that comes from there, and if the pods are this owner's.
func (m *model) listed(view, from [mostPods]object) (out [mostPods]lock) {
	former := false
	for i := range m.pods {
		former = former || view[i].beganThere && !view[i].foreign
	}
	for i := range m.pods {
		o := from[i]
		if o.state == locks && (!o.locksThere || former || !o.foreign) {
			uid := o.generation == view[i].generation
			out[i] = lock{there: true, begun: o.begun, slot: o.slot, same: uid && o.bytes == view[i].bytes, sameUID: uid}
		}
	}
	return out
}

func (m *model) list(view [mostPods]object, listed [mostPods]lock) []decision.Lock {
	out := []decision.Lock{}
	for i, l := range listed {
		if !l.there {
			continue
		}
		name, text := m.name(i, view[i]), m.text(i)
		if !l.same {
			text = "others"
		}
		if !l.sameUID && !m.sameNames {
			name = "successor-of-" + name
		}
		out = append(out, decision.Lock{
			Pod: name, UID: m.uid(i, l.sameUID), Text: text, Version: "7", Receipt: receipt.Receipt{State: receipt.Locks, Share: receipt.Share{ID: int(l.slot)}, Begun: l.begun}, Runs: receipt.NoID,
		})
	}
	return out
}

func (*model) text(i int) string { return fmt.Sprintf("bytes-%d", i) }

func (*model) uid(i int, same bool) string { return fmt.Sprintf("uid-%d-%t", i, same) }

// world is what decision decides on.
func (m *model) world(view [mostPods]object, listed []decision.Lock, state assignment.State, count int) decision.World {
	w := decision.World{
		Owner:    decision.Owner{Owner: identity.Owner{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "worker"}, Namespace: "shop", Count: count, State: state, Revision: "new", Replaces: m.deployment, Limit: 1},
		Evidence: decision.Evidence{Locks: listed},
	}
	for i := range m.pods {
		o := view[i]
		if o.foreign {
			continue // it locks no slot of this owner
		}
		if m.central(i) && (m.without == forgets || m.without == byGate && o.gated) {
			o.gated, o.begun, o.id = true, false, noID
		}
		p := decision.Pod{
			Pod: proposal.Pod{
				Name: m.name(i, o), UID: m.uid(i, true), Controller: "new", Owned: true, Terminating: o.term, Ordinal: proposal.NoOrdinal,
				Receipt: receipt.Receipt{Share: receipt.Nothing()},
			},
			Assigned: m.central(i), Agent: m.agent(i), Gated: o.gated, Placed: !o.gated, Ready: !o.gated, Text: m.text(i), Version: "7",
		}
		is := receipt.Receipt{State: receipt.State(o.state), Share: receipt.Share{ID: int(o.slot)}, Begun: o.begun}
		if p.Receipt = is; o.locksThere {
			p.Under = there
		}
		if o.id != noID {
			p.ID = strconv.Itoa(int(o.id))
		}
		if p.Agent {
			p.Receipt.Write = "written"
			p.Proposal = receipt.Proposal{Owner: w.Owner.Owner, Confirmed: &receipt.Confirmed{Write: "written"}}
			if o.confirmed != o.bytes {
				p.Proposal.Confirmed.Write = "another"
			}
		}
		w.Pods = append(w.Pods, p)
	}
	return w
}

func (m *model) find(view [mostPods]object, name string) int {
	for i := range m.pods {
		if m.name(i, view[i]) == name {
			return i
		}
	}
	panic("decision decided about a pod that it does not know: " + name)
}
