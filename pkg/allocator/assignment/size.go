package assignment

import (
	"fmt"
	"maps"
	"strconv"
)

const (
	// AnnotationLimit is what Kubernetes allows for the keys and values of all annotations of one
	// object, in bytes (apimachinery, pkg/api/validation, TotalAnnotationSizeLimitB).
	AnnotationLimit = 256 * 1024
	// Reserve is kept free: a ReplicaSet gets its Deployment's annotations plus its own, and a
	// Deployment that is full to the limit cannot roll any more.
	Reserve = 4 * 1024
	// SizeLimit is what idalloc fills at most, in bytes.
	SizeLimit = AnnotationLimit - Reserve
)

// TooLargeError says that a state does not fit into the owner's annotations. Nothing was written.
type TooLargeError struct {
	// Size and Limit are in bytes, of all annotations of the owner together.
	Size, Limit int
	// Fits is the largest count that fits with these pod names.
	Fits int
}

// Error gives both sizes, the largest N that fits, and the way out.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("idalloc: the owner's annotations would take %d bytes, %d are allowed (Kubernetes' %d less %d kept free for its ReplicaSets); "+
		"with these pod names at most %d replicas fit: scale down to that, shorten the workload's name, or remove other annotations",
		e.Size, e.Limit, AnnotationLimit, Reserve, e.Fits)
}

// Size returns the bytes that Kubernetes counts against AnnotationLimit.
func Size(annotations map[string]string) int {
	n := 0
	for k, v := range annotations {
		n += len(k) + len(v)
	}
	return n
}

// CheckSize returns a *TooLargeError when the owner's other annotations and s do not fit together.
func CheckSize(annotations map[string]string, key string, s State) error {
	after := make(map[string]string, len(annotations)+len(sealedKeys(key)))
	maps.Copy(after, annotations)
	for _, k := range Keys(key) {
		delete(after, k)
	}
	maps.Copy(after, s.Encode(key, ""))
	size := Size(after)
	if size <= SizeLimit {
		return nil
	}
	used := size
	for _, id := range s.Slots.IDs() {
		used -= entrySize(s, id)
	}
	fits := 0
	for _, id := range s.Slots.IDs() {
		if used += entrySize(s, id); used > SizeLimit {
			break
		}
		fits++
	}
	return &TooLargeError{Size: size, Limit: SizeLimit, Fits: fits}
}

func entrySize(s State, id int) int {
	n := entryOverhead + len(strconv.Itoa(id)) + len(s.Slots[id])
	if uid, ok := s.UIDs[id]; ok {
		n += entryOverhead + len(strconv.Itoa(id)) + len(uid)
	}
	return n
}
