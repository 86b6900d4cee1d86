// Package inspect looks at an owner and its pods from outside. It makes the rows of "idalloc get" and the findings of "idalloc
// verify". It writes nothing to the API server. It is for cmd/idalloc; the JSON forms of its types are what these commands
// print.
package inspect

import (
	"cmp"
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// State is the state of a slot as it can be seen from outside.
type State string

// The states of a slot.
const (
	// Held: a live pod has the slot.
	Held State = "held"
	// Free: no pod has it.
	Free State = "free"
	// Dead: the pod that has it is gone, Succeeded or Failed.
	Dead State = "dead"
	// Lost: the pod that has it has outlived its grace period, so that its node may be down.
	Lost State = "lost"
	// Duplicate: receipts of several live pods name it, or its pod has another slot, too.
	Duplicate State = "duplicate"
	// Handover: a live pod has it, and another pod asks for it.
	Handover State = "handover"
	// Quarantine: no pod has it, but the process of a pod that vanished might still act under it.
	Quarantine State = "quarantine"
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
	// HeldSince is when the pod's process took the slot, by the clock that made the receipt's epoch. It is nil without a receipt.
	HeldSince *metav1.Time `json:"heldSince,omitempty"`
	// Moving says that the pod is alive and has to move to another slot, because this one is at or above the count.
	Moving bool `json:"moving,omitempty"`
	// Receipt is the epoch of the pod's receipt for this slot, 0 if it has none yet.
	Receipt     int64  `json:"receipt,omitempty"`
	Phase       string `json:"phase,omitempty"`
	Terminating bool   `json:"terminating,omitempty"`
	// Requester is the pod that asks for the slot.
	Requester string `json:"requester,omitempty"`
}

// View is an owner and its slots at one moment.
type View struct {
	Owner     string `json:"owner"`
	Namespace string `json:"namespace"`
	Count     int    `json:"count"`
	Epoch     int64  `json:"epoch"`
	// Clean says that idalloc was the last to change the assignment.
	Clean bool `json:"clean"`
	// Finished says that the owner is a Job that makes no more pods. Then Slots has only those that live pods have.
	Finished bool `json:"finished,omitempty"`
	// Waiting are the names of the owner's live pods without a slot.
	Waiting []string `json:"waiting"`
	Slots   []Slot   `json:"slots"`
	// Unlisted is the number of free slots that are not in Slots, because there are too many.
	Unlisted int `json:"unlisted,omitempty"`
	// Problems say which parts of the annotations cannot be read.
	Problems []string `json:"problems,omitempty"`
}

// Read reads an owner and its pods. Errors: store.ErrGone, *store.ForbiddenError, or another error that store.Temporary judges.
func Read(ctx context.Context, s *store.Store, ref store.Ref) (View, error) {
	now, err := read(ctx, s, ref)
	if err != nil {
		return View{}, err
	}
	if ref.Kind == store.Job { // its status says whether dead pods will have successors
		whole, err := s.GetWhole(ctx, ref)
		if err != nil {
			return View{}, err
		}
		now.rollout.finished = finished(whole)
	}
	return now.view(), nil
}

// mostListed is the number of slots that have a row even if they are free. It has a limit because a count may be two billion. No
// map has that many entries.
const mostListed = 1 << 15

func (n snapshot) view() View {
	owner, state := n.owner, n.owner.Record.State
	v := View{
		Owner: owner.String(), Namespace: owner.Namespace, Count: owner.Count, Epoch: state.Epoch, Clean: owner.Clean(),
		Slots: []Slot{}, Waiting: []string{}, Finished: n.rollout.finished,
	}
	if err := owner.Unreadable(); err != nil {
		v.Problems = append(v.Problems, err.Error())
	}
	for _, p := range owner.Record.Problems {
		v.Problems = append(v.Problems, p.Error())
	}
	receipts := map[int]int{}
	ids := map[int]bool{}
	for id := range min(owner.Count, mostListed) {
		ids[id] = true
	}
	for _, p := range n.pods {
		if n.locks(p) {
			receipts[p.receipt().ID]++
			ids[p.receipt().ID] = true
		}
	}
	entries := map[string]int{}
	for id, name := range state.Slots {
		ids[id] = true
		entries[name]++
	}
	v.Unlisted = owner.Count
	for id := range ids {
		if id < owner.Count {
			v.Unlisted--
		}
		v.Slots = append(v.Slots, n.row(id, receipts[id] > 1 || entries[state.Slots[id]] > 1))
	}
	if v.Finished {
		v.Slots, v.Unlisted = slices.DeleteFunc(v.Slots, func(s Slot) bool { return s.State == Dead || s.State == Free }), 0
	}
	slices.SortFunc(v.Slots, func(a, b Slot) int { return cmp.Compare(a.ID, b.ID) })
	for _, p := range n.waiters() {
		v.Waiting = append(v.Waiting, p.Name)
	}
	slices.Sort(v.Waiting)
	return v
}

func (n snapshot) row(id int, duplicate bool) Slot {
	state := n.owner.Record.State
	slot := Slot{ID: id, Pod: state.Slots[id], Requester: state.Handover[id], State: Free}
	if slot.Pod == "" {
		slot.Pod = n.byReceipt(id)
	}
	p, exists := n.pods[slot.Pod]
	if exists {
		slot.Revision, slot.Node, slot.Phase, slot.Terminating = p.revision, p.node, p.phase, p.Terminating
		since := metav1.NewTime(p.Created)
		slot.Since = &since
		if p.receipt() != nil && p.receipt().ID == id {
			slot.Receipt = p.receipt().Epoch
			at := metav1.NewTime(time.UnixMilli(slot.Receipt))
			slot.HeldSince = &at
		}
	}
	_, quarantined := state.Quarantine.Since(id)
	switch {
	case slot.Pod == "" && quarantined:
		slot.State = Quarantine
	case slot.Pod == "":
	case n.death(id, p, exists) != "":
		slot.State = Dead
	case duplicate:
		slot.State = Duplicate
	case n.overdue(p):
		slot.State = Lost
	case slot.Requester != "":
		slot.State = Handover
	default:
		slot.State = Held
		slot.Moving = id >= n.owner.Count && !p.Terminating
	}
	return slot
}

// byReceipt returns the name of a live pod whose receipt names the slot, or an empty text. It finds the holder of a slot whose
// entry somebody has removed.
func (n snapshot) byReceipt(id int) string {
	found := ""
	for name, p := range n.pods {
		if n.locks(p) && p.receipt().ID == id && (found == "" || name < found) {
			found = name
		}
	}
	return found
}
