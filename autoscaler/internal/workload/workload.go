// Package workload reads what an autoscaler must know about a workload, and writes its target and its number of pods.
//
// Each write carries the owner's UID and the resourceVersion on which the decision was based. So a write fails if anything has changed since, for example if a
// second autoscaler wrote, or the owner was deleted and created again. Then the caller reads and decides again.
package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/autoscaler/internal/decide"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/allocator/store/wire"
	"github.com/idalloc/idalloc/pkg/placement"
)

// FieldManager is the name under which the autoscaler writes.
const FieldManager = "idalloc-autoscaler"

// ErrNoScale means that this kind of owner has no scale subresource.
var ErrNoScale = errors.New("a Job has no scale subresource")

// Workload is an owner that is scaled.
type Workload struct {
	Store *store.Store
	Ref   kinds.Ref
}

// Moment is the result of one read of the owner.
type Moment struct {
	// Seen has no loads.
	decide.Seen
	Owner store.Owner
}

// CanScale returns an error that wraps ErrNoScale if owners of this kind cannot be scaled through the scale subresource.
func CanScale(ref kinds.Ref) error {
	if ref.Is(kinds.Job) {
		return fmt.Errorf("%w: %s: use a Deployment, a StatefulSet or a ReplicaSet, or --scale=false", ErrNoScale, ref)
	}
	return nil
}

// Read reads the owner and, if necessary, its pods. Pods are not read if the owner's status says that each pod is Ready and there are no others, and the row
// lists each id. Errors: as of store.Get.
func (w Workload) Read(ctx context.Context) (Moment, error) {
	whole, err := w.Store.GetWhole(ctx, w.Ref)
	if err != nil {
		return Moment{}, err
	}
	var object wire.Object
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(whole.Object, &object); err != nil {
		return Moment{}, fmt.Errorf("read %s in namespace %s: %w", w.Ref, w.Ref.Namespace, err)
	}
	owner, err := store.DecodeOwner(w.Ref, &object, nil)
	if err != nil {
		return Moment{}, err
	}
	m := see(owner)
	m.Foreign = foreign(object.ManagedFields)
	m.Scaler, m.Scaled = scaler(object.ManagedFields)
	m.Ours = m.Scaler == FieldManager
	if m.Trouble == "" && m.Count > 0 && (!settled(whole, m.Count) || m.lacks()) {
		err = w.attend(ctx, &m)
	}
	return m, err
}

// see returns a moment without what only pods and managed fields show. It limits the number of pods to the maximum number of partitions, because further pods
// can own nothing. A mistaken number is for --max-replicas to correct, without an entry for each of a million ids.
func see(o store.Owner) Moment {
	m := Moment{Owner: o, Seen: decide.Seen{Count: min(o.Count, placement.MaxCount), Target: o.Wish.Target, Absent: map[int]string{}, Unready: map[int]bool{}}}
	row := o.Record.State.Row
	if row != nil {
		m.Partitions, m.Row = row.Count, maps.Clone(row.Owners)
	}
	m.Trouble = trouble(o, row)
	return m
}

// lacks reports whether an id is not a member.
func (m *Moment) lacks() bool {
	for id := range m.Count {
		if _, member := m.Row[id]; !member {
			return true
		}
	}
	return false
}

// maxPods limits what is kept for each pod. Others write the number of pods, and no map has room for more.
const maxPods = 16_384

// trouble explains why the owner must not be changed, or returns "".
func trouble(o store.Owner, row *assignment.Row) string {
	ask := fmt.Sprintf("kubectl annotate -n %s %s", o.Namespace, o.Ref)
	switch {
	case o.Terminating:
		return fmt.Sprintf("%s is being deleted", o.Ref)
	case o.Count > maxPods:
		return fmt.Sprintf("%s has %d replicas, and an assignment has room for fewer than %d: scale it down", o.Ref, o.Count, maxPods)
	case !o.Wish.HasCount || o.Wish.Count == 0:
		return fmt.Sprintf("%s has no partitions: %s %s=64", o.Ref, ask, assignment.PartitionCountKey)
	case o.Wish.Strategy != placement.NameExternal:
		return fmt.Sprintf("the autoscaler places partitions only with the strategy external: %s --overwrite %s=%s", ask, assignment.PartitionStrategyKey, placement.NameExternal)
	case len(o.Record.Problems) > 0:
		return "idalloc's annotations cannot be read, and the pods have not put them right yet"
	case row == nil:
		return "no pod works on partitions yet"
	case row.Strategy != placement.NameExternal:
		return fmt.Sprintf("the strategy in force is still %s: the pods change it with their next plan", row.Strategy)
	case row.Count != o.Wish.Count:
		return fmt.Sprintf("%d partitions are in force, and %d are asked for: the pods change that with their next plan", row.Count, o.Wish.Count)
	}
	return ""
}

// Assign writes the target, if nothing has changed since m was read. Errors: as of Scale.
func (w Workload) Assign(ctx context.Context, m Moment, target placement.Owners) error {
	return w.patch(ctx, m.Owner, map[string]any{"annotations": map[string]string{assignment.PartitionTargetKey: target.String()}}, nil)
}

// Scale sets the number of pods, if nothing has changed since m was read. Errors wrap request.ErrConflict if something has changed, request.ErrGone if the owner no
// longer exists, or *request.ForbiddenError if the Role does not permit it. Others come from the client.
func (w Workload) Scale(ctx context.Context, m Moment, replicas int) error {
	if err := CanScale(w.Ref); err != nil {
		return err
	}
	return w.patch(ctx, m.Owner, map[string]any{}, map[string]any{"replicas": replicas}, "scale")
}

// patch writes metadata and spec of the object or of a subresource.
func (w Workload) patch(ctx context.Context, o store.Owner, metadata, spec map[string]any, subresource ...string) error {
	ctx, cancel := context.WithTimeout(ctx, request.Timeout)
	defer cancel()
	metadata["uid"], metadata["resourceVersion"] = o.UID, o.ResourceVersion
	object := map[string]any{"metadata": metadata}
	if spec != nil {
		object["spec"] = spec
	}
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	gvr := w.Ref.GVR()
	_, err = w.Store.Dynamic.Resource(gvr).Namespace(w.Ref.Namespace).
		Patch(ctx, w.Ref.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: FieldManager}, subresource...)
	for _, sub := range subresource {
		gvr.Resource += "/" + sub
	}
	return w.judge(gvr, err)
}

// judge turns the error of a write into one that names its cause.
func (w Workload) judge(gvr schema.GroupVersionResource, err error) error {
	what := fmt.Sprintf("patch %s %q in namespace %s", gvr.Resource, w.Ref.Name, w.Ref.Namespace)
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s: %w: %w", what, request.ErrConflict, err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s: %w: %w", what, request.ErrGone, err)
	case apierrors.IsForbidden(err):
		return request.Forbidden("patch", gvr, w.Ref.Namespace, w.Ref.Name, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
