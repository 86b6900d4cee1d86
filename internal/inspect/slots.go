// Package inspect looks at an owner and its pods from outside. It makes the rows of "idalloc get" and the findings of "idalloc verify". It writes nothing to
// the API server. It is for cmd/idalloc; the JSON forms of its types are what these commands print.
package inspect

import (
	"cmp"
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// State is the state of a slot, as seen from outside.
type State string

// The states of a slot.
const (
	// Held: a live pod locks the slot.
	Held State = "held"
	// Free: no pod has it.
	// Do: nothing, if fewer pods than the count are up yet. Otherwise read the log of a pod without an id.
	Free State = "free"
	// Dead: the pod that has it is gone, Succeeded or Failed.
	// Do: nothing for ten seconds: a pod that waits takes the slot, or a pod with an id removes the entry. If it stays, run `gc`.
	Dead State = "dead"
	// Lost: the pod that has it has outlived its grace period by 10 s. Its node may be down.
	// Do: see [a node is lost](operations.md#a-node-is-lost).
	Lost State = "lost"
	// Duplicate: the receipts of several live pods lock it. This lasts for moments: the pod that works keeps the slot, and the others withdraw when their
	// processes run.
	// Do: run `verify` if it stays.
	Duplicate State = "duplicate"
	// Handover: a live pod has it, and gives it to the pod that asks for it when its work has stopped.
	// Do: run `verify` if it stays.
	Handover State = "handover"
	// Proposed: the map gives it to a live pod that does not lock it yet. In strict mode the pod may wait until an earlier holder's Lease expires.
	// Do: run `verify` if it stays.
	Proposed State = "proposed"
	// Moving: in the table only: the slot is held, and its id is at or above the count, so the pod moves to another slot. In JSON it is held, with
	// `"moving":true`.
	// Do: run `verify` if it stays.
	Moving State = "moving"
	// Ending: in the table only: the slot is held, and the pod is Terminating. It keeps the id until it has given it back or is gone. In JSON it is held, with
	// `"terminating":true`.
	Ending State = "ending"
)

// Slot is one slot of a View, and one row of its table.
type Slot struct {
	ID       int    `json:"id"`
	Pod      string `json:"pod,omitempty"`
	Revision string `json:"revision,omitempty"`
	Node     string `json:"node,omitempty"`
	State    State  `json:"state"`
	// Since is when the pod was created.
	Since *metav1.Time `json:"since,omitempty"`
	// HeldSince is when idalloc last wrote the pod's receipt. The pod has had the slot at least since then. It is nil without a receipt, or if the server does
	// not tell.
	HeldSince *metav1.Time `json:"heldSince,omitempty"`
	// Moving: the pod is alive and must move to another slot, because this one is at or above the count.
	Moving      bool   `json:"moving,omitempty"`
	Phase       string `json:"phase,omitempty"`
	Terminating bool   `json:"terminating,omitempty"`
	// Assign is the pod's label idalloc.dev/assign: "controller" if the controller locks for the pod, "agent" if it plans for the pod, or empty.
	Assign string `json:"assign,omitempty"`
	// Requester is the pod that asks for the slot.
	Requester string `json:"requester,omitempty"`
	// Lease is nil if no pod has a Lease of the slot, or if it could not be read.
	Lease *LeaseRow `json:"lease,omitempty"`
}

// View is an owner and its slots at one moment.
type View struct {
	Owner     string `json:"owner"`
	Namespace string `json:"namespace"`
	Count     int    `json:"count"`
	// Finished: the owner is a Job that makes no more pods. Then Slots has only the slots of live pods.
	Finished bool `json:"finished,omitempty"`
	// Waiting are the names of the owner's live pods without a slot.
	Waiting []string `json:"waiting"`
	// assign is Slot.Assign for the waiting pods, by name.
	assign map[string]string
	Slots  []Slot `json:"slots"`
	// Unlisted is the number of free slots that are not in Slots, because there are too many.
	Unlisted int `json:"unlisted,omitempty"`
	// Problems are the parts of the annotations that cannot be read.
	Problems []string `json:"problems,omitempty"`
}

// Read reads an owner and its pods. Errors: request.ErrGone, *request.ForbiddenError, or another error that request.Temporary judges.
func Read(ctx context.Context, s *store.Store, ref kinds.Ref) (View, error) {
	now, err := read(ctx, s, ref)
	if err != nil {
		return View{}, err
	}
	return holdingOf(now).view(), nil
}

func (h *holding) view() View {
	owner := h.owner
	v := View{
		Owner: owner.String(), Namespace: owner.Namespace, Count: owner.Count, Slots: []Slot{}, Waiting: []string{}, Finished: h.rollout.finished,
		assign: map[string]string{},
	}
	for _, p := range owner.Record.Problems {
		v.Problems = append(v.Problems, p.Error())
	}
	ids := map[int]bool{}
	for id := range min(owner.Count, mostListed) {
		ids[id] = true
	}
	for id := range h.lockers {
		ids[id] = true
	}
	for id := range owner.Record.State.Slots {
		ids[id] = true
	}
	v.Unlisted = owner.Count
	for id := range ids {
		if id < owner.Count {
			v.Unlisted--
		}
		v.Slots = append(v.Slots, h.row(id))
	}
	if v.Finished {
		v.Slots, v.Unlisted = slices.DeleteFunc(v.Slots, func(s Slot) bool { return s.State == Dead || s.State == Free }), 0
	}
	slices.SortFunc(v.Slots, func(a, b Slot) int { return cmp.Compare(a.ID, b.ID) })
	for _, p := range h.waiters {
		v.Waiting = append(v.Waiting, p.Name)
		v.assign[p.Name] = p.assign()
	}
	slices.Sort(v.Waiting)
	return v
}

func (h *holding) row(id int) Slot {
	state := h.owner.Record.State
	name, locks := h.holder(id)
	slot := Slot{ID: id, Pod: name, Requester: state.Handover[id], State: Free, Lease: h.lease(id)}
	if dead := state.Slots[id]; name == "" && dead != "" && h.death(dead) != "" {
		slot.Pod = dead
	}
	p, exists := h.pods[slot.Pod]
	if exists {
		slot.Revision, slot.Node, slot.Phase, slot.Terminating, slot.Assign = p.revision, p.node, p.phase, p.Terminating, p.assign()
		slot.Since = new(metav1.NewTime(p.Created))
		if locks && !p.written.IsZero() {
			slot.HeldSince = new(metav1.NewTime(p.written))
		}
	}
	switch {
	case slot.Pod == "":
	case name == "":
		slot.State = Dead
	case len(h.lockers[id]) > 1:
		slot.State = Duplicate
	case h.overdue(p):
		slot.State = Lost
	case slot.Requester != "":
		slot.State = Handover
	case !locks:
		slot.State = Proposed
	default:
		slot.State = Held
		slot.Moving = id >= h.owner.Count && !p.Terminating
	}
	return slot
}
