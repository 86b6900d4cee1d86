package conformance

import (
	"hash/fnv"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// hidden reports whether a pod lacks the labels by which others find its lock.
func hidden(pod *metav1.ObjectMeta) bool {
	r, _ := receipt.Anywhere(pod)
	return r.State == receipt.Locks && len(ReceiptOf(pod).Locks) == 0
}

// Slot names a slot. owner is the value of the owner label.
func Slot(namespace, owner string, id int) string {
	return namespace + "/" + owner + "/" + strconv.Itoa(id)
}

// Partition names a partition. owner is the value of the owner label.
func Partition(namespace, owner string, k int) string {
	return namespace + "/" + owner + partitionMark + strconv.Itoa(k)
}

// ReceiptOf reads a pod's receipt. The receipt locks nothing if the pod lacks the labels by which others find it.
func ReceiptOf(pod *metav1.ObjectMeta) Receipt {
	r, _ := receipt.Anywhere(pod)
	out := Receipt{ID: idOf(pod.Annotations[receipt.Key]), Pod: string(pod.UID), Begun: r.Begun, Strict: r.Strict}
	owner := pod.Labels[receipt.OwnerLabel]
	switch {
	case !r.Locked() || owner == "" || pod.Labels[receipt.IDLabel] != strconv.Itoa(r.Share.ID):
	case r.State == receipt.Unreadable && pod.Labels[receipt.AssignLabel] == receipt.ByAgent:
		out.Locks = confirmed(pod, owner)
	case r.State == receipt.Unreadable:
		out.Locks = []string{Slot(pod.Namespace, owner, r.Share.ID), pod.Namespace + "/" + owner + partitionMark + star}
	case owner == assignment.OwnerLabelValue(r.Owner):
		out.Locks, out.Notes = lockedBy(pod.Namespace, owner, r)
	}
	return out
}

// confirmed returns what the controller has confirmed of an agent's receipt. An unreadable receipt locks that.
func confirmed(pod *metav1.ObjectMeta, owner string) (locks []string) {
	told, ok := receipt.ProposalOf(pod)
	if !ok || told.Confirmed == nil {
		return nil
	}
	is := *told.Confirmed
	if !is.Slot {
		locks = append(locks, Slot(pod.Namespace, owner, is.Share.ID))
	}
	for k := range is.Share.Partitions.Minus(is.Partitions).All() {
		locks = append(locks, Partition(pod.Namespace, owner, k))
	}
	return locks
}

// idOf returns a short name for the bytes of a receipt.
func idOf(text string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // a hash never fails
	return strconv.FormatUint(h.Sum64(), 36)
}

// lockedBy returns what a receipt locks and notes.
func lockedBy(namespace, owner string, r receipt.Receipt) (locks, notes []string) {
	locks = append(locks, Slot(namespace, owner, r.Share.ID))
	for k := range r.Share.Partitions.All() {
		locks = append(locks, Partition(namespace, owner, k))
	}
	if r.Token == 0 || r.Begun {
		return locks, nil
	}
	notes = append(notes, locks[0])
	for _, s := range r.Tokens {
		for k := range s.Set.All() {
			notes = append(notes, Partition(namespace, owner, k))
		}
	}
	return locks, notes
}

func versionOf(pod *metav1.ObjectMeta) int64 {
	n, err := strconv.ParseInt(pod.ResourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
