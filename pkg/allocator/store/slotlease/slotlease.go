package slotlease

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// Resource is the resource of Leases (strict mode).
var Resource = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"} //nolint:gochecknoglobals // a constant that Go cannot express

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

// Name returns the name of the Lease of a slot of this owner ("Kind/name").
func Name(owner string, id int) string {
	return "idalloc-" + assignment.OwnerLabelValue(owner) + "-" + strconv.Itoa(id)
}

// Binding returns the fields of a Lease that affect its readers.
func Binding(u *unstructured.Unstructured) map[string]string {
	out := map[string]string{receipt.Key: u.GetAnnotations()[receipt.Key]}
	for _, key := range []string{receipt.OwnerLabel, receipt.IDLabel} {
		out[key] = u.GetLabels()[key]
	}
	out[holderField], _, _ = unstructured.NestedString(u.Object, specField, holderField)
	seconds, _, _ := unstructured.NestedInt64(u.Object, specField, lastsField)
	out[lastsField] = strconv.FormatInt(seconds, 10)
	return out
}

// Object returns the Lease as an API object.
func (l Lease) Object(ref kinds.Ref) *unstructured.Unstructured {
	metadata := map[string]any{
		"name": Name(ref.String(), l.ID), "namespace": ref.Namespace,
		"labels": map[string]any{receipt.OwnerLabel: assignment.OwnerLabelValue(ref.String()), receipt.IDLabel: strconv.Itoa(l.ID)},
	}
	spec := map[string]any{lastsField: int64(math.Ceil(l.Lasts.Seconds()))}
	if l.Version != "" { // without the UID an update of a deleted Lease would create it again
		metadata["resourceVersion"], metadata["uid"] = l.Version, l.UID
	}
	if l.Holder != "" {
		metadata["annotations"] = map[string]any{receipt.Key: l.Receipt.Encode()}
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

// Of reads a Lease. If its receipt is unreadable, it locks every partition.
func Of(u *unstructured.Unstructured, id int) Lease {
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
