package assignment

import (
	"fmt"
	"slices"
	"strconv"
)

const (
	// AnnotationLimit is the number of bytes that Kubernetes allows for the keys and values of all annotations of
	// one object (k8s.io/apimachinery, pkg/api/validation, TotalAnnotationSizeLimitB).
	AnnotationLimit = 256 * 1024
	// Reserve is the number of bytes that idalloc leaves free. A ReplicaSet gets its Deployment's annotations plus its own, so a full Deployment could not
	// roll out any more.
	Reserve = 4 * 1024
	// SizeLimit bounds, in bytes, a write that adds entries or requests.
	SizeLimit = AnnotationLimit - Reserve
	// RepairLimit bounds, in bytes, a write that adds none: it restores a full assignment, or frees a slot. A ReplicaSet's own annotations fit into the
	// rest; the largest of them, the history of its revisions, has up to 2,000 bytes.
	RepairLimit = AnnotationLimit - Reserve*3/4
)

// TooLargeError means that a state does not fit into the owner's annotations. No part of the state was written.
type TooLargeError struct {
	// Size and Limit are in bytes, for all annotations of the owner together.
	Size, Limit int
	// Fits is the largest number of replicas that fits with these pod names.
	Fits int
}

// Error names both sizes, the largest N that fits, and what to do.
func (e *TooLargeError) Error() string {
	// Error: exit code 1: of `gc`, or of a pod that ends.
	// Do: see [the size limit](operations.md#the-size-limit).
	return fmt.Sprintf("the owner's annotations would take %d bytes, %d are allowed (Kubernetes' %d less %d kept free for its ReplicaSets); "+
		"with these pod names at most %d replicas fit: scale down to that, shorten the workload's name, or remove other annotations",
		e.Size, e.Limit, AnnotationLimit, AnnotationLimit-e.Limit, e.Fits)
}

// Size returns the bytes that Kubernetes counts against AnnotationLimit.
func Size(annotations map[string]string) int {
	n := 0
	for k, v := range annotations {
		n += len(k) + len(v)
	}
	return n
}

// Room is how full an owner's annotations are. The zero value describes an owner without annotations.
type Room struct {
	// Others is the size of the annotations of other programs, and All the size of all annotations, in bytes.
	Others, All int
}

// RoomOn returns the room on an owner with these annotations.
func RoomOn(annotations map[string]string) Room {
	r, ours := Room{All: Size(annotations)}, Keys()
	for k, v := range annotations {
		if !slices.Contains(ours, k) {
			r.Others += len(k) + len(v)
		}
	}
	return r
}

// Check returns a *TooLargeError if s and the owner's other annotations do not fit within limit (in bytes). A state that makes the annotations no larger
// than they are always fits, so that a slot can change hands even if another program has filled the room beyond the limit.
func (r Room) Check(s State, limit int) error {
	size := r.Others + Size(s.Encode())
	if size <= max(limit, r.All) {
		return nil
	}
	used := size
	for id := range s.Slots {
		used -= entrySize(s, id)
	}
	fits := 0
	for _, id := range s.Slots.IDs() {
		if used += entrySize(s, id); used > limit {
			break
		}
		fits++
	}
	return &TooLargeError{Size: size, Limit: limit, Fits: fits}
}

func entrySize(s State, id int) int { return entryOverhead + len(strconv.Itoa(id)) + len(s.Slots[id]) }
