package store

import (
	"errors"
	"fmt"

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
	// Pods is how many live pods the owner has by its status. Before Kubernetes 1.35 it lacks Terminating ones of Deployments and ReplicaSets.
	Pods int
	// Ready is how many of them are Ready by its status. It is 0 for a kind of which nothing is known but that it can be scaled.
	Ready int
	// Rollout says how a Deployment replaces its pods. It is the zero value for other kinds.
	Rollout Rollout
	// RollsNow says that a rolling update is under way, so each pod that ends has a successor.
	RollsNow bool
	// Selector selects the owner's pods, in the form that list requests take.
	Selector string
	// Annotations are all of the owner's annotations, nil if it has none.
	Annotations map[string]string
	// Record is the content of idalloc's annotations.
	Record assignment.Record
	// Wish is what the user's annotations say about partitions.
	Wish assignment.Wish
	// Controlled says that another object controls a ReplicaSet, so that it is the owner of no pod.
	Controlled bool
	// Terminating says that the owner is being deleted.
	Terminating bool
}

// Room returns how full the owner's annotations are.
func (o Owner) Room() assignment.Room { return assignment.RoomOn(o.Annotations) }

// DecodeOwner reads an owner from an Object. earlier may be nil. If it is an earlier moment of the owner with the same annotations, DecodeOwner
// reuses its Record: most events change only the status. It may replace values in object.Annotations by equal ones. An error names the field
// of the spec that cannot be read.
func DecodeOwner(ref Ref, object *Object, earlier *Owner) (Owner, error) {
	o := Owner{
		Ref:             ref,
		UID:             object.UID,
		Generation:      object.Generation,
		ResourceVersion: object.ResourceVersion,
		Annotations:     object.Annotations,
		Terminating:     object.DeletionTimestamp != nil,
		Controlled:      ref.Is(ReplicaSet) && metav1.GetControllerOfNoCopy(object) != nil,
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
			o.Annotations[k] = v // the record has slices of this copy of the text, so the other copy can go
		}
	}
	return o, nil
}

// says reports whether o's record is that of these annotations, too.
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
