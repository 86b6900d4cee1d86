package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// Leases is the resource of Leases (strict mode).
var Leases = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"} //nolint:gochecknoglobals // a constant that Go cannot express

// Lease locks one slot and its partitions for a limited time.
type Lease struct {
	// ID is the slot.
	ID int
	// Holder is the UID of the pod that has the Lease, empty if none has. Receipt is what the Lease locks, from the annotation receipt.Key.
	Holder  string
	Receipt receipt.Receipt
	// Pod is the holder's name, for people, or its UID if the Lease has no name.
	Pod string
	// Lasts is the time from a renewal to the expiry.
	Lasts time.Duration
	// Renewed is the holder's wall clock at the last renewal, for people.
	Renewed time.Time
	// Version is the resourceVersion and UID the UID of the object. They are empty if the Lease does not exist.
	Version, UID string
}

// Outlasts returns how long an observer must see a Lease unchanged before it has expired for any observer: 1.05 times Lasts, because the rates of two
// clocks differ by at most 5 percent, plus one second.
func (l Lease) Outlasts() time.Duration { return l.Lasts + l.Lasts/20 + time.Second }

// LeaseName returns the name of the Lease of a slot of this owner ("Kind/name").
func LeaseName(owner string, id int) string {
	return "idalloc-" + assignment.OwnerLabelValue(owner) + "-" + strconv.Itoa(id)
}

func leaseTarget(ref kinds.Ref, id int) request.Target {
	return request.Target{GVR: Leases, Namespace: ref.Namespace, Name: LeaseName(ref.String(), id)}
}

// GetLease reads the Lease of a slot. A Lease that does not exist has no Version. Errors: *request.ForbiddenError, or another error that Temporary judges.
func (s *Store) GetLease(ctx context.Context, ref kinds.Ref, id int) (Lease, error) {
	u, err := s.getWhole(ctx, leaseTarget(ref, id))
	switch {
	case errors.Is(err, request.ErrGone):
		return Lease{ID: id, Receipt: receipt.Receipt{Share: receipt.Nothing()}}, nil
	case err != nil:
		return Lease{}, err
	}
	return leaseOf(u, id), nil
}

// EachLease lists the owner's Leases by a consistent read, and calls do for each. Like Receipts, it first asks for one page, and keeps at most one page of
// at most 8 MiB in memory. If it has to start over, it calls again, because the Leases passed to do before may be gone. Errors: as of GetLease.
func (s *Store) EachLease(ctx context.Context, ref kinds.Ref, again func(), do func(Lease)) error {
	o := metav1.ListOptions{LabelSelector: receipt.OwnerLabel + "=" + assignment.OwnerLabelValue(ref.String())}
	return s.eachObject(ctx, request.Target{GVR: Leases, Namespace: ref.Namespace}, o, 0, again, func(u *unstructured.Unstructured) {
		id, err := strconv.Atoi(u.GetLabels()[receipt.IDLabel])
		if err == nil && u.GetName() == LeaseName(ref.String(), id) { // others belong to another program
			do(leaseOf(u, id))
		}
	})
}

// PutLease creates or updates the Lease if it still has next.Version, and returns it as stored. The Lease has no owner reference, like that of a leader
// election, because work under it may continue after the owner is deleted. Errors: request.ErrConflict, request.ErrAmbiguous, request.ErrNotKept if it has a holder, request.ErrRefused,
// *request.ForbiddenError, or another error that Temporary judges.
func (s *Store) PutLease(ctx context.Context, ref kinds.Ref, next Lease) (Lease, error) {
	verb := "update"
	if next.Version == "" {
		verb = "create"
	}
	client, sent := s.Dynamic.Resource(Leases).Namespace(ref.Namespace), next.object(ref)
	u, err := request.Write(ctx, leaseTarget(ref, next.ID), verb, func(ctx context.Context) (*unstructured.Unstructured, error) {
		if next.Version == "" {
			return client.Create(ctx, sent, metav1.CreateOptions{FieldManager: assignment.FieldManager})
		}
		return client.Update(ctx, sent, metav1.UpdateOptions{FieldManager: assignment.FieldManager})
	})
	switch {
	case err == nil:
		if next.Holder != "" {
			err = request.Kept(binding(sent), binding(u), fmt.Sprintf("Lease %s in namespace %s", sent.GetName(), ref.Namespace))
		}
		return leaseOf(u, next.ID), err
	case apierrors.IsAlreadyExists(err), errors.Is(err, request.ErrGone):
		return Lease{}, fmt.Errorf("%w: %w", request.ErrConflict, err)
	}
	return Lease{}, request.AsRefused(err)
}

// TryLease asks by a dry run whether the API server would accept a write of the unchanged Lease. Errors: as of PutLease.
func (s *Store) TryLease(ctx context.Context, ref kinds.Ref, l Lease) error {
	sent := l.object(ref)
	o := metav1.UpdateOptions{FieldManager: assignment.FieldManager, DryRun: []string{metav1.DryRunAll}}
	_, err := request.Write(ctx, leaseTarget(ref, l.ID), "update", func(ctx context.Context) (*unstructured.Unstructured, error) {
		return s.Dynamic.Resource(Leases).Namespace(ref.Namespace).Update(ctx, sent, o)
	})
	return request.AsRefused(err)
}

// DeleteLease deletes the Lease if it still has l.UID and l.Version. A missing Lease is no error. Afterwards, a write of the Lease that is still under way
// can only arrive if it creates the Lease. Errors: as of PutLease.
func (s *Store) DeleteLease(ctx context.Context, ref kinds.Ref, l Lease) error {
	uid := types.UID(l.UID)
	only := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &l.Version}}
	t := leaseTarget(ref, l.ID)
	_, err := request.Write(ctx, t, "delete", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.Dynamic.Resource(t.GVR).Namespace(t.Namespace).Delete(ctx, t.Name, only)
	})
	if errors.Is(err, request.ErrGone) {
		return nil
	}
	return request.AsRefused(err)
}

// binding returns the fields of a Lease that affect its readers.
func binding(u *unstructured.Unstructured) map[string]string {
	out := map[string]string{receipt.Key: u.GetAnnotations()[receipt.Key]}
	for _, key := range []string{receipt.OwnerLabel, receipt.IDLabel} {
		out[key] = u.GetLabels()[key]
	}
	out[holderField], _, _ = unstructured.NestedString(u.Object, specField, holderField)
	seconds, _, _ := unstructured.NestedInt64(u.Object, specField, lastsField)
	out[lastsField] = strconv.FormatInt(seconds, 10)
	return out
}

// object returns the Lease as an API object.
func (l Lease) object(ref kinds.Ref) *unstructured.Unstructured {
	metadata := map[string]any{
		"name": LeaseName(ref.String(), l.ID), "namespace": ref.Namespace,
		labelsField: map[string]any{receipt.OwnerLabel: assignment.OwnerLabelValue(ref.String()), receipt.IDLabel: strconv.Itoa(l.ID)},
	}
	spec := map[string]any{lastsField: int64(math.Ceil(l.Lasts.Seconds()))}
	if l.Version != "" { // without the UID an update of a deleted Lease would create it again
		metadata["resourceVersion"], metadata["uid"] = l.Version, l.UID
	}
	if l.Holder != "" {
		metadata[annotationsField] = map[string]any{receipt.Key: l.Receipt.Encode()}
		spec[holderField] = l.Pod + holderSeparator + l.Holder
		spec["renewTime"] = l.Renewed.UTC().Format(microTime)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, specField: spec,
	}}
}

// Fields of a Lease.
const (
	specField   = "spec"
	holderField = "holderIdentity"
	lastsField  = "leaseDurationSeconds"
)

const (
	// holderSeparator separates the name and the UID in a Lease's holder. No name contains it.
	holderSeparator = "/"
	// microTime is the format of metav1.MicroTime.
	microTime = "2006-01-02T15:04:05.000000Z07:00"
)

// leaseOf reads a Lease. If its receipt is unreadable, it locks every partition.
func leaseOf(u *unstructured.Unstructured, id int) Lease {
	l := Lease{ID: id, Version: u.GetResourceVersion(), UID: string(u.GetUID()), Receipt: receipt.Receipt{Share: receipt.Nothing()}}
	seconds, _, _ := unstructured.NestedInt64(u.Object, specField, lastsField)
	l.Lasts = time.Duration(min(seconds, math.MaxInt32)) * time.Second // so that Outlasts does not overflow
	holder, _, _ := unstructured.NestedString(u.Object, specField, holderField)
	if holder == "" {
		return l
	}
	var named bool
	if l.Pod, l.Holder, named = strings.Cut(holder, holderSeparator); !named {
		l.Holder = holder
	}
	l.Pod = cmp.Or(l.Pod, l.Holder)
	renewed, _, _ := unstructured.NestedString(u.Object, specField, "renewTime")
	l.Renewed, _ = time.Parse(time.RFC3339Nano, renewed)
	var err error
	if l.Receipt, err = receipt.Parse(u.GetAnnotations()[receipt.Key]); err != nil || l.Receipt.Share.ID != id || l.Receipt.UID != l.Holder {
		l.Receipt = receipt.Receipt{State: receipt.Unreadable, Share: receipt.Share{ID: id}}
	}
	return l
}
