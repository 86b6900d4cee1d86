package slots

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// snapshot is an owner and then its pods, as read one after the other.
type snapshot struct {
	owner store.Owner
	// pods are the owner's pods, those with a receipt for it, and its holders, by name.
	pods    map[string]pod
	rollout rollout
}

type pod struct {
	name, uid, revision, node, phase string
	created                          metav1.Time
	terminating                      bool
	// ready is the pod's condition.
	ready bool
	// owned says that the owner's selector matches the pod.
	owned bool
	// controller is the pod's direct controller's name, empty if it has none.
	controller string
	// ordinal counts from 0; it is noOrdinal where a pod has none.
	ordinal int
	// receipt locks a slot; nil if the pod has none, or gave its slot up.
	receipt *assignment.Receipt
	gaveUp  bool
	// waits says that idalloc in the pod said that it waits for a slot.
	waits bool
	// damage says what is wrong with the receipt.
	damage string
}

const noOrdinal = -1

// sign reports whether the pod shows that idalloc runs in it, or did.
func (p pod) sign() bool { return p.receipt != nil || p.gaveUp || p.waits || p.damage != "" }

func (p pod) live() bool { return p.phase != "Succeeded" && p.phase != "Failed" }

// read reads an owner and its pods. Errors: as of store.Get and store.ListPods.
func read(ctx context.Context, s *store.Store, ref store.Ref) (snapshot, error) {
	owner, err := s.Get(ctx, ref)
	if err != nil {
		return snapshot{}, err
	}
	now := snapshot{owner: owner, pods: map[string]pod{}}
	for _, selector := range []string{owner.Selector, assignment.HoldersSelector(owner.String())} {
		list, err := s.ListFullPods(ctx, ref.Namespace, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return snapshot{}, err
		}
		for i := range list.Items {
			p := newPod(&list.Items[i], owner, s.Clock.Now())
			p.owned = selector == owner.Selector
			if known, ok := now.pods[p.name]; ok && known.uid == p.uid {
				continue
			}
			if p.receipt != nil || p.owned {
				now.pods[p.name] = p
			}
		}
	}
	return now, now.readOthers(ctx, s)
}

// readOthers reads the holders that somebody relabelled.
func (n snapshot) readOthers(ctx context.Context, s *store.Store) error {
	for _, name := range n.owner.Record.State.Slots {
		if _, known := n.pods[name]; known {
			continue
		}
		u, err := s.GetFullPod(ctx, n.owner.Namespace, name)
		if errors.Is(err, store.ErrGone) {
			continue
		}
		if err != nil {
			return err
		}
		n.pods[name] = newPod(u, n.owner, s.Clock.Now())
	}
	return nil
}

func newPod(u *unstructured.Unstructured, owner store.Owner, now time.Time) pod {
	p := pod{name: u.GetName(), uid: string(u.GetUID()), created: u.GetCreationTimestamp(), terminating: u.GetDeletionTimestamp() != nil}
	p.node, _, _ = unstructured.NestedString(u.Object, "spec", "nodeName")
	p.phase, _, _ = unstructured.NestedString(u.Object, "status", "phase")
	p.ready = condition(u, "Ready")["status"] == "True"
	labels := u.GetLabels()
	p.revision = cmp.Or(labels["pod-template-hash"], labels["controller-revision-hash"])
	if c := metav1.GetControllerOfNoCopy(u); c != nil {
		p.controller = c.Name
	}
	p.ordinal = ordinal(owner, u)
	receipt, err := assignment.ReceiptOf(u.GetAnnotations(), p.uid, owner.String(), owner.Horizon(now))
	if err != nil && !errors.Is(err, assignment.ErrForeignReceipt) {
		p.damage = err.Error()
	}
	switch { // with a bad epoch it still locks its slot
	case receipt == nil:
	case receipt.Waits:
		p.waits = true
	case receipt.GaveUp:
		p.gaveUp = true
	default:
		p.receipt = receipt
	}
	return p
}

// ordinal counts from 0: a StatefulSet's index less its start, or a Job's completion index.
func ordinal(owner store.Owner, u *unstructured.Unstructured) int {
	var text string
	switch owner.Kind {
	case store.StatefulSet:
		text = u.GetName()[strings.LastIndexByte(u.GetName(), '-')+1:]
	case store.Job:
		text = u.GetAnnotations()["batch.kubernetes.io/job-completion-index"]
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < owner.OrdinalStart {
		return noOrdinal
	}
	return n - owner.OrdinalStart
}

// holds reports whether the assignment gives slot id to this live pod.
func (n snapshot) holds(id int) bool {
	p, exists := n.pods[n.owner.Record.State.Slots[id]]
	return exists && n.death(id, p, exists) == ""
}

// death says why the holder of slot id is dead; it is empty if it is not. p is the pod of its name.
func (n snapshot) death(id int, p pod, exists bool) string {
	uid := n.owner.Record.State.UIDs[id]
	switch {
	case !exists:
		return "gone"
	case !p.live():
		return p.phase
	case uid != assignment.ShortUID(p.uid):
		return fmt.Sprintf("an earlier pod (UID %s…) of the one that has its name now", uid)
	}
	return ""
}

// waiters are the owner's live pods that have no slot, oldest first.
func (n snapshot) waiters() []pod {
	var waiters []pod
	for name, p := range n.pods {
		id, named := n.owner.Record.State.Slots.Of(name)
		if named && n.death(id, p, true) == "" {
			continue
		}
		if p.live() && !p.terminating && p.owned && p.receipt == nil {
			waiters = append(waiters, p)
		}
	}
	slices.SortFunc(waiters, func(a, b pod) int {
		return cmp.Or(a.created.Compare(b.created.Time), cmp.Compare(a.name, b.name))
	})
	return waiters
}
