package store

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
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
	Rollout Rollout
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
func DecodeOwner(ref kinds.Ref, object *Object, earlier *Owner) (Owner, error) {
	o := Owner{
		Ref:             ref,
		UID:             object.UID,
		Generation:      object.Generation,
		ResourceVersion: object.ResourceVersion,
		Annotations:     object.Annotations,
		Terminating:     object.DeletionTimestamp != nil,
		Controlled:      ref.Is(kinds.ReplicaSet) && metav1.GetControllerOfNoCopy(object) != nil,
		OrdinalStart:    object.Spec.Ordinals.Start,
		RollsNow:        rollsNow(ref, object),
		Count:           1, // Kubernetes' own default for replicas and parallelism
		Pods:            object.Status.Replicas + object.Status.TerminatingReplicas + object.Status.Active + object.Status.Terminating,
		Ready:           object.Status.ReadyReplicas + object.Status.Ready,
	}
	if count := desired(ref, &object.Spec); count != nil {
		o.Count = *count
	}
	var err error
	if ref.Rolls() {
		if o.Rollout, err = decodeRollout(object, o.Count); err != nil {
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
