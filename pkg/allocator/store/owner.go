package store

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store/rollout"
	"github.com/idalloc/idalloc/pkg/allocator/store/wire"
)

// Owner is one version of an owner. Count and assignment were read together.
type Owner struct {
	kinds.Ref
	UID             types.UID
	Generation      int64
	ResourceVersion string
	// Count is the desired number of replicas, N.
	Count int
	// OrdinalStart is a StatefulSet's .spec.ordinals.start.
	OrdinalStart int
	// Pods is the number of live pods in the owner's status. Before Kubernetes 1.35 it lacks Terminating pods of Deployments and ReplicaSets.
	Pods int
	// Ready is the number of Ready pods in the owner's status. It is 0 for a kind of which only the scale subresource is known.
	Ready int
	// Rollout is how a Deployment replaces its pods. It is the zero value for other kinds.
	Rollout rollout.View
	// Template is the hash of a StatefulSet's pod template, as its pods have it in the label kinds.RevisionLabel. It is empty for other kinds. Pods with an
	// ordinal below Partition keep an older template, even if they are replaced.
	Template  string
	Partition int
	// RollsNow: a rolling update is under way, so each pod that ends has a successor.
	RollsNow bool
	// Selector selects the owner's pods, in the form for list requests.
	Selector string
	// Annotations are all of the owner's annotations, nil if it has none.
	Annotations map[string]string
	// Record is the content of idalloc's annotations.
	Record assignment.Record
	// Wish is what the user's annotations request for partitions.
	Wish assignment.Wish
	// Controlled: another object controls the ReplicaSet, so it owns no pod.
	Controlled bool
	// Terminating: the owner is being deleted.
	Terminating bool
}

// Room returns how full the owner's annotations are.
func (o Owner) Room() assignment.Room { return assignment.RoomOn(o.Annotations) }

// DecodeOwner reads an owner from an Object. earlier may be nil. If it is an earlier version of the owner with the same annotations, DecodeOwner reuses its
// Record: most events change only the status. It may replace values in object.Annotations by equal ones. An error names the unreadable field of the spec.
func DecodeOwner(ref kinds.Ref, object *wire.Object, earlier *Owner) (Owner, error) {
	o := Owner{
		Ref:             ref,
		UID:             object.UID,
		Generation:      object.Generation,
		ResourceVersion: object.ResourceVersion,
		Annotations:     object.Annotations,
		Terminating:     object.DeletionTimestamp != nil,
		Controlled:      ref.Is(kinds.ReplicaSet) && metav1.GetControllerOfNoCopy(object) != nil,
		OrdinalStart:    object.Spec.Ordinals.Start,
		RollsNow:        rollout.Running(ref, object),
		Template:        object.Status.UpdateRevision,
		Partition:       object.Spec.UpdateStrategy.RollingUpdate.Partition,
		Count:           1, // Kubernetes' own default for replicas and parallelism
		Pods:            object.Status.Replicas + object.Status.TerminatingReplicas + object.Status.Active + object.Status.Terminating,
		Ready:           object.Status.ReadyReplicas + object.Status.Ready,
	}
	if count := desired(ref, object); count != nil {
		o.Count = *count
	}
	var err error
	if ref.Rolls() {
		if o.Rollout, err = rollout.Of(object, o.Count); err != nil {
			return Owner{}, fmt.Errorf("%s: spec.strategy: %w", ref, err)
		}
	}
	if o.Selector, err = selector(object.Spec.Selector); err != nil {
		return Owner{}, fmt.Errorf("%s: spec.selector: %w", ref, err)
	}
	o.Wish = assignment.DecodeWish(o.Annotations)
	if earlier == nil || earlier.UID != o.UID || !earlier.says(o.Annotations) {
		o.Record = assignment.Decode(o.Annotations)
		return o, nil
	}
	o.Record = earlier.Record
	for _, k := range assignment.Keys() {
		if v, ok := earlier.Annotations[k]; ok {
			o.Annotations[k] = v // the record has slices of this copy of the text, so the other copy can be freed
		}
	}
	return o, nil
}

// says reports whether these annotations have the same record as o.
func (o *Owner) says(annotations map[string]string) bool {
	for _, k := range assignment.Keys() {
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

// desired returns the number of pods in the spec of an owner, nil for Kubernetes' default.
func desired(ref kinds.Ref, o *wire.Object) *int {
	if ref.Of().Count == kinds.ByParallelism {
		return o.Spec.Parallelism
	}
	return o.Spec.Replicas
}

// Ordinal returns the index of one of the owner's pods, counted from 0. ok is false if the pod has none.
func (o Owner) Ordinal(pod metav1.Object) (n int, ok bool) {
	n, ok = o.Index(pod)
	n -= o.OrdinalStart
	return n, ok && n >= 0
}

// Condemned reports whether Kubernetes will remove this pod of the owner, because the owner was scaled down or its ordinals begin elsewhere.
func (o Owner) Condemned(pod metav1.Object) bool {
	n, ok := o.Index(pod)
	return ok && o.Of().Condemns && (n < o.OrdinalStart || n >= o.OrdinalStart+o.Count)
}

// KeptByCondemned explains that a pod waits for a slot kept by a condemned pod, and what to do.
func (o Owner) KeptByCondemned() string {
	return fmt.Sprintf("%s has the ordinals %d to %d now, and pods with other ordinals keep slots that they cannot hand over; with the policy OrderedReady "+
		"Kubernetes removes these only when all others are Ready: delete them, and they do not come back", o.Ref, o.OrdinalStart, o.OrdinalStart+o.Count-1)
}

// About returns the owner as the subject of an Event.
func (o Owner) About() metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, UID: o.UID}
}

// with returns an owner of a further kind with its present metadata.
func (o Owner) with(meta *metav1.PartialObjectMetadata) Owner {
	o.UID, o.Generation, o.ResourceVersion, o.Annotations = meta.UID, meta.Generation, meta.ResourceVersion, meta.Annotations
	o.Terminating = meta.DeletionTimestamp != nil
	o.Record, o.Wish = assignment.Decode(o.Annotations), assignment.DecodeWish(o.Annotations)
	return o
}
