// Package slots is the view of an owner's slots that "idalloc get" shows.
package slots

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// State is what a slot is, as far as it can be seen from outside.
type State string

// States of a slot.
const (
	// Held: a live pod has the slot.
	Held State = "held"
	// Free: no pod has it.
	Free State = "free"
	// Dead: the pod that has it is gone, Succeeded or Failed.
	Dead State = "dead"
	// Duplicate: receipts of several live pods name it, or its pod has another slot too.
	Duplicate State = "duplicate"
	// Handover: a live pod has it, and another asks for it.
	Handover State = "handover"
)

// Slot is one row.
type Slot struct {
	ID       int    `json:"id"`
	Pod      string `json:"pod,omitempty"`
	Revision string `json:"revision,omitempty"`
	Node     string `json:"node,omitempty"`
	State    State  `json:"state"`
	// Since is when the pod was created.
	Since *metav1.Time `json:"since,omitempty"`
	// Receipt is the epoch of the pod's receipt for this slot, zero if it has none yet.
	Receipt     int64  `json:"receipt,omitempty"`
	Phase       string `json:"phase,omitempty"`
	Terminating bool   `json:"terminating,omitempty"`
	// Requester is the pod that asks for the slot.
	Requester string `json:"requester,omitempty"`
}

// View is an owner with its slots.
type View struct {
	Owner     string `json:"owner"`
	Namespace string `json:"namespace"`
	Count     int    `json:"count"`
	Epoch     int64  `json:"epoch"`
	// Clean says that idalloc was the last to change the assignment.
	Clean bool `json:"clean"`
	// Waiting are the owner's live pods that have no slot.
	Waiting []string `json:"waiting"`
	Slots   []Slot   `json:"slots"`
	// Problems say what cannot be read.
	Problems []string `json:"problems,omitempty"`
}

// Read reads an owner and its pods. Errors: as of store.Get and store.ListPods.
func Read(ctx context.Context, s *store.Store, ref store.Ref) (View, error) {
	owner, err := s.Get(ctx, ref)
	if err != nil {
		return View{}, err
	}
	pods := map[string]pod{}
	for _, selector := range []string{owner.Selector, assignment.InstanceIDLabel} {
		list, err := s.ListFullPods(ctx, ref.Namespace, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return View{}, err
		}
		for i := range list.Items {
			p := newPod(&list.Items[i], owner, s.Clock.Now())
			if p.receipt != nil || selector == owner.Selector {
				pods[p.name] = p
			}
		}
	}
	if err := readOthers(ctx, s, owner, pods); err != nil {
		return View{}, err
	}
	return build(owner, pods), nil
}

// readOthers reads the holders that somebody relabelled.
func readOthers(ctx context.Context, s *store.Store, owner store.Owner, pods map[string]pod) error {
	for _, name := range owner.Record.State.Slots {
		if _, known := pods[name]; known {
			continue
		}
		u, err := s.GetFullPod(ctx, owner.Namespace, name)
		if errors.Is(err, store.ErrGone) {
			continue
		}
		if err != nil {
			return err
		}
		pods[name] = newPod(u, owner, s.Clock.Now())
	}
	return nil
}

type pod struct {
	name, uid, revision, node, phase string
	created                          metav1.Time
	terminating                      bool
	receipt                          *assignment.Receipt
}

func (p pod) live() bool { return p.phase != "Succeeded" && p.phase != "Failed" }

func newPod(u *unstructured.Unstructured, owner store.Owner, now time.Time) pod {
	p := pod{name: u.GetName(), uid: string(u.GetUID()), created: u.GetCreationTimestamp(), terminating: u.GetDeletionTimestamp() != nil}
	p.node, _, _ = unstructured.NestedString(u.Object, "spec", "nodeName")
	p.phase, _, _ = unstructured.NestedString(u.Object, "status", "phase")
	labels := u.GetLabels()
	p.revision = cmp.Or(labels["pod-template-hash"], labels["controller-revision-hash"])
	receipt, err := assignment.ReceiptOf(u.GetAnnotations(), p.uid, owner.String(), now)
	if (err == nil || errors.Is(err, assignment.ErrBadEpoch)) && receipt != nil && !receipt.GaveUp {
		p.receipt = receipt
	}
	return p
}

func build(owner store.Owner, pods map[string]pod) View {
	state := owner.Record.State
	v := View{
		Owner: owner.String(), Namespace: owner.Namespace, Count: owner.Count, Epoch: state.Epoch, Clean: owner.Clean(),
		Slots: []Slot{}, Waiting: []string{},
	}
	for _, p := range owner.Record.Problems {
		v.Problems = append(v.Problems, p.Error())
	}
	receipts := map[int]int{}
	ids := map[int]bool{}
	for id := range owner.Count {
		ids[id] = true
	}
	for _, p := range pods {
		if p.receipt != nil && p.live() {
			receipts[p.receipt.ID]++
			ids[p.receipt.ID] = true
		}
	}
	entries := map[string]int{}
	for id, name := range state.Slots {
		ids[id] = true
		entries[name]++
	}
	for id := range ids {
		v.Slots = append(v.Slots, row(id, owner, pods, receipts[id] > 1 || entries[state.Slots[id]] > 1))
	}
	slices.SortFunc(v.Slots, func(a, b Slot) int { return cmp.Compare(a.ID, b.ID) })
	for name, p := range pods {
		if entries[name] == 0 && p.receipt == nil && p.live() && !p.terminating {
			v.Waiting = append(v.Waiting, name)
		}
	}
	slices.Sort(v.Waiting)
	return v
}

func row(id int, owner store.Owner, pods map[string]pod, duplicate bool) Slot {
	slot := Slot{ID: id, Pod: owner.Record.State.Slots[id], Requester: owner.Record.State.Handover[id], State: Free}
	if slot.Pod == "" {
		slot.Pod = byReceipt(id, pods)
	}
	p, exists := pods[slot.Pod]
	if exists {
		slot.Revision, slot.Node, slot.Phase, slot.Terminating = p.revision, p.node, p.phase, p.terminating
		slot.Since = &p.created
		if p.receipt != nil && p.receipt.ID == id {
			slot.Receipt = p.receipt.Epoch
		}
	}
	uid := owner.Record.State.UIDs[id]
	switch {
	case slot.Pod == "":
	case !exists || !p.live() || (uid != "" && uid != p.uid):
		slot.State = Dead
	case duplicate:
		slot.State = Duplicate
	case slot.Requester != "":
		slot.State = Handover
	default:
		slot.State = Held
	}
	return slot
}

// byReceipt finds the holder of a slot whose entry somebody removed.
func byReceipt(id int, pods map[string]pod) string {
	found := ""
	for name, p := range pods {
		if p.receipt != nil && p.receipt.ID == id && p.live() && (found == "" || name < found) {
			found = name
		}
	}
	return found
}
