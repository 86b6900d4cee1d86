package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// Writer is another field manager that has set annotations of idalloc.
type Writer struct {
	Manager, Operation, Subresource string
	// Time is the time of its last change. It is zero if the server did not note it.
	Time time.Time
	// Keys are the annotations of idalloc that it owns.
	Keys []string
}

// String names the writer in a sentence.
func (w Writer) String() string {
	operation := w.Operation
	if w.Subresource != "" {
		operation += " of " + w.Subresource
	}
	at := ""
	if !w.Time.IsZero() {
		at = " at " + w.Time.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("field manager %q (%s)%s", w.Manager, operation, at)
}

// writers returns the other field managers that own any of these annotations, the last writer first.
func writers(fields []metav1.ManagedFieldsEntry, keys []string) []Writer {
	var found []Writer
	for i := range fields {
		entry := &fields[i]
		if isOurs(entry) {
			continue
		}
		owned := ownedAnnotations(entry)
		w := Writer{Manager: entry.Manager, Operation: string(entry.Operation), Subresource: entry.Subresource}
		for _, key := range keys {
			if _, ok := owned["f:"+key]; ok {
				w.Keys = append(w.Keys, key)
			}
		}
		if len(w.Keys) == 0 {
			continue
		}
		if entry.Time != nil {
			w.Time = entry.Time.Time
		}
		found = append(found, w)
	}
	slices.SortStableFunc(found, func(a, b Writer) int { return b.Time.Compare(a.Time) })
	return found
}

func isOurs(entry *metav1.ManagedFieldsEntry) bool {
	return entry.Manager == assignment.FieldManager && entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == ""
}

// LastWrite returns when idalloc wrote an object last, as far as its managedFields say. It is zero if they do not.
func LastWrite(fields []metav1.ManagedFieldsEntry) time.Time {
	for i := range fields {
		if isOurs(&fields[i]) && fields[i].Time != nil {
			return fields[i].Time.Time
		}
	}
	return time.Time{}
}

// Tracked reports whether managedFields name idalloc as the last writer of the seal. It does not check the seal.
func (o *Object) Tracked() bool {
	for i := range o.ManagedFields {
		if entry := &o.ManagedFields[i]; isOurs(entry) {
			_, seal := ownedAnnotations(entry)["f:"+assignment.SealKey]
			return seal
		}
	}
	return false
}

// ownedAnnotations returns the annotations that an entry owns. Each key has the prefix "f:".
func ownedAnnotations(entry *metav1.ManagedFieldsEntry) map[string]json.RawMessage {
	var f struct {
		Metadata struct {
			Annotations map[string]json.RawMessage `json:"f:annotations"`
		} `json:"f:metadata"`
	}
	if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &f); err != nil {
		return nil
	}
	return f.Metadata.Annotations
}

// Tampering returns one sentence that says which annotations of idalloc somebody else has changed, and which field managers
// did it, as far as metadata.managedFields tell. The owner's map must not be clean. key is the assignment's annotation key.
func (o Owner) Tampering(key string) string {
	return o.tampering(o.Writers, assignment.SealKey, []string{key, assignment.EpochKey, assignment.SealKey})
}

// PartitionTampering is Tampering for the annotations about partitions.
func (o Owner) PartitionTampering() string {
	return o.tampering(o.PartitionWriters, assignment.PartitionSealKey, assignment.PartitionKeys())
}

// tampering names the writers, and which of the keys are missing. seal is the key of the seal that covers them.
func (o Owner) tampering(writers []Writer, seal string, keys []string) string {
	const most = 3 // enough for an operator to go and look for the others
	var parts []string
	for _, w := range writers[:min(most, len(writers))] {
		parts = append(parts, annotations(w.Keys)+" set by "+w.String())
	}
	var removed []string
	for _, k := range keys {
		if _, ok := o.Annotations[k]; !ok {
			removed = append(removed, k)
		}
	}
	if len(removed) > 0 {
		parts = append(parts, annotations(removed)+" removed by somebody whom metadata.managedFields do not name")
	}
	if len(parts) == 0 {
		return "an annotation that " + seal + " seals was removed by somebody whom metadata.managedFields do not name"
	}
	return strings.Join(parts, "; ")
}

func annotations(keys []string) string {
	if len(keys) == 1 {
		return "annotation " + keys[0] + " was"
	}
	return "annotations " + strings.Join(keys[:len(keys)-1], ", ") + " and " + keys[len(keys)-1] + " were"
}

// Culprits is Tampering without times. The same writers give the same sentence, however often they write.
func (o Owner) Culprits(key string) string {
	o.Writers = slices.Clone(o.Writers)
	for i := range o.Writers {
		o.Writers[i].Time = time.Time{}
	}
	return o.Tampering(key)
}

// Undone reports whether kubectl rollout undo has changed the map. That command sets a Deployment's annotations to the copy
// that the older revision's ReplicaSet has. Its field manager is "kubectl" or "kubectl-rollout". No other kubectl command
// that changes annotations uses the plain "kubectl".
func (o Owner) Undone() bool {
	if !o.Rolls() || o.Clean() || len(o.Record.Problems) > 0 || len(o.Writers) != 1 {
		return false
	}
	w := o.Writers[0]
	return (w.Manager == "kubectl" || w.Manager == "kubectl-rollout") && w.Operation == string(metav1.ManagedFieldsOperationUpdate) && w.Subresource == ""
}
