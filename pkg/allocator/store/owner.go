package store

import (
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// Owner is one moment of an owner. Count and assignment were read together.
type Owner struct {
	Ref
	UID             types.UID
	Generation      int64
	ResourceVersion string
	// Count is the desired number of replicas, N.
	Count int
	// OrdinalStart is a StatefulSet's .spec.ordinals.start.
	OrdinalStart int
	// Rollout says how a Deployment replaces its pods. It is the zero value for other kinds.
	Rollout Rollout
	// Selector selects the owner's pods, in the form that list requests take.
	Selector string
	// Annotations are all of the owner's annotations, nil if it has none.
	Annotations map[string]string
	// Record is the content of idalloc's annotations.
	Record assignment.Record
	// Trust says how far Record is believed.
	Trust assignment.Trust
	// PartitionTrust says how far Record.Partitions is believed. It says nothing of the slots.
	PartitionTrust assignment.Trust
	// Wish is what the user's annotations say about partitions.
	Wish assignment.Wish
	// Writers are the other field managers that set annotations of idalloc, the last one first. It is nil if the map is
	// clean.
	Writers []Writer
	// PartitionWriters is the same for what idalloc writes about partitions. It is nil unless somebody else changed that.
	PartitionWriters []Writer
	// Ancient says that the seal fits, but that the server has forgotten who wrote it, because it merges the oldest of
	// more than ten field managers into one. Then the map is foreign, or clean if this process knows that idalloc wrote
	// it.
	Ancient bool
	// FenceOurs says that the map is not clean, but that idalloc was the last to write the fence-after.
	FenceOurs bool
	// Terminating says that the owner is being deleted.
	Terminating bool
}

// Names reports whether the assignment gives slot id to this pod, and not to an earlier pod of the same name.
func (o Owner) Names(id int, pod string, uid types.UID) bool {
	if o.Record.State.Slots[id] != pod {
		return false
	}
	return o.Record.State.UIDs[id] == assignment.ShortUID(string(uid))
}

// Room returns how full the owner's annotations are.
func (o Owner) Room() assignment.Room {
	r := assignment.RoomOn(o.Annotations, o.Record.Key)
	if o.PartitionTrust == assignment.Unreadable { // it stays, and is not in the state
		for _, k := range assignment.PartitionKeys() {
			r.Others += len(k) + len(o.Annotations[k])
		}
	}
	return r
}

// SlotOf returns the slot that the assignment gives to this pod. ok is false if there is none.
func (o Owner) SlotOf(pod string, uid types.UID) (id int, ok bool) {
	id, ok = o.Record.State.Slots.Of(pod)
	return id, ok && o.Names(id, pod, uid)
}

// Unreadable returns an error that wraps ErrOtherKey or ErrNewer if nobody may change the map, because idalloc has, or may
// have, written it under another annotation key or in a newer format. Otherwise it returns nil.
func (o Owner) Unreadable() error {
	switch {
	case o.Trust != assignment.Unreadable:
		return nil
	case o.Record.Elsewhere():
		return fmt.Errorf("%w: %s in namespace %s has its assignment in annotation %s, and this process looks in %s: give all pods of a workload "+
			"the same --annotation-key; to change it, scale to zero, run `idalloc gc %s -n %s --annotation-key=%s`, and scale up again; nothing was changed",
			ErrOtherKey, o.Ref, o.Namespace, o.Record.OtherKey, o.Record.Key, o.Ref, o.Namespace, o.Record.OtherKey)
	}
	return fmt.Errorf("%w: %s in namespace %s: annotation %s says format %d, and this version knows formats up to %d: upgrade this idalloc; nothing was changed",
		ErrNewer, o.Ref, o.Namespace, assignment.SealKey, o.Record.Newer, assignment.Format)
}

// DecodeOwner reads an owner from an Object with the assignment under key. It checks epochs against now. earlier may be
// nil. If it is an earlier moment of the owner with the same annotations, DecodeOwner reuses its Record: most events
// change only the status. It may replace values in object.Annotations by equal ones. An error names the field of the spec
// that cannot be read.
func DecodeOwner(ref Ref, object *Object, key string, now time.Time, earlier *Owner) (Owner, error) {
	o := Owner{
		Ref:             ref,
		UID:             object.UID,
		Generation:      object.Generation,
		ResourceVersion: object.ResourceVersion,
		Annotations:     object.Annotations,
		Terminating:     object.DeletionTimestamp != nil,
		OrdinalStart:    object.Spec.Ordinals.Start,
		Count:           1, // Kubernetes' own default for replicas and parallelism
	}
	if count := kinds[ref.Kind].count(&object.Spec); count != nil {
		o.Count = *count
	}
	var err error
	if ref.Rolls() {
		if o.Rollout, err = decodeRollout(object, o.Count); err != nil {
			return Owner{}, fmt.Errorf("idalloc: %s: spec.strategy: %w", ref, err)
		}
	}
	if o.Selector, err = selector(object.Spec.Selector); err != nil {
		return Owner{}, fmt.Errorf("idalloc: %s: spec.selector: %w", ref, err)
	}
	us, nobody, ancient := tracked(object.ManagedFields, assignment.SealKey)
	if earlier != nil && earlier.UID == o.UID && earlier.says(o.Annotations, now) {
		o.Record = earlier.Record
		for _, k := range append(o.Record.Keys(), assignment.PartitionKeys()...) {
			if v, ok := earlier.Annotations[k]; ok {
				o.Annotations[k] = v // the record has slices of this copy of the text, so the other copy can go
			}
		}
	} else {
		o.Record = o.decode(key, now, us)
	}
	o.Trust = trust(o.Record, us, nobody)
	o.Wish = assignment.DecodeWish(o.Annotations)
	if o.Record.Partitions.Present {
		us, nobody, _ := tracked(object.ManagedFields, assignment.PartitionSealKey)
		o.PartitionTrust = partitionTrust(o.Record.Partitions, us, nobody)
	}
	if o.PartitionTrust == assignment.Foreign {
		o.PartitionWriters = writers(object.ManagedFields, assignment.PartitionKeys())
	}
	o.FenceOurs = !o.Clean() && o.Record.State.FenceAfter > 0 && wroteFence(object.ManagedFields)
	if o.Ancient = ancient && o.Record.Sealed; !o.Clean() && !o.Ancient {
		o.Writers = writers(object.ManagedFields, assignment.Keys(key))
	}
	return o, nil
}

// decode reads the annotations. It accepts every epoch in a clean map: if the epoch is ahead of this clock, it comes from a
// pod whose clock is ahead, and all pods continue from there. In any other map such an epoch may be damage.
func (o *Owner) decode(key string, now time.Time, ours bool) assignment.Record {
	if ours {
		if r := assignment.Decode(o.Annotations, key, string(o.UID), assignment.AnyTime()); r.Sealed {
			return r
		}
	}
	return assignment.Decode(o.Annotations, key, string(o.UID), now)
}

// Horizon returns the time to check the epochs of receipts against. It is now, or the epoch of a clean map if that is
// later.
func (o *Owner) Horizon(now time.Time) time.Time {
	if epoch := time.UnixMilli(o.Record.State.Epoch); o.Clean() && epoch.After(now) {
		return epoch
	}
	return now
}

// says reports whether o's record can be reused for these annotations. It cannot if there is a quarantine, whose epochs
// are checked against the time, or if the record is not sealed, because it then depends on other annotations, too.
func (o *Owner) says(annotations map[string]string, now time.Time) bool {
	if !o.Record.Sealed || len(o.Record.State.Quarantine) > 0 || assignment.CheckEpoch(o.Record.State.Epoch, now) != nil {
		return false
	}
	for _, k := range append(o.Record.Keys(), assignment.PartitionKeys()...) {
		was, there := o.Annotations[k]
		if is, still := annotations[k]; there != still || was != is {
			return false
		}
	}
	return true
}

func selector(ls *metav1.LabelSelector) (string, error) {
	if ls == nil || len(ls.MatchLabels)+len(ls.MatchExpressions) == 0 {
		return "", errors.New("it is empty and would select every pod of the namespace")
	}
	s, err := metav1.LabelSelectorAsSelector(ls)
	if err != nil {
		return "", err
	}
	return s.String(), nil
}

// wroteFence reports whether idalloc was the last to change the owner's fence-after.
func wroteFence(fields []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(fields, func(entry metav1.ManagedFieldsEntry) bool {
		if !isOurs(&entry) {
			return false
		}
		_, fence := ownedAnnotations(&entry)["f:"+assignment.FenceAfterKey]
		return fence
	})
}

// tracked reads from managedFields who wrote the seal under this key last.
//
//   - us: it was idalloc. An update that changes a field's value takes the field away from all other managers, and every
//     write of idalloc changes the seal. So if idalloc owns the seal, nobody else has changed it since.
//   - nobody: no manager owns the seal.
//   - ancient: its only owner is the manager into which the API server merges the oldest of more than ten managers
//     (k8s.io/apimachinery, pkg/util/managedfields/internal/capmanagers.go). Anybody may have written it.
func tracked(fields []metav1.ManagedFieldsEntry, key string) (us, nobody, ancient bool) {
	const merged = "ancient-changes"
	nobody, ancient = true, true
	for i := range fields {
		if _, seal := ownedAnnotations(&fields[i])["f:"+key]; seal {
			nobody = false
			us = us || isOurs(&fields[i])
			ancient = ancient && fields[i].Manager == merged && fields[i].Operation == metav1.ManagedFieldsOperationUpdate
		}
	}
	return us, nobody, ancient && !nobody
}
