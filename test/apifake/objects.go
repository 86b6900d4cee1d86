package apifake

import (
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// Names of the objects that most tests need.
const (
	Apps       = "apps/v1"
	Deployment = "Deployment"
	Pods       = "Pod"
	// Worker is the Deployment's name, OwnerUID its UID.
	Worker   = "worker"
	OwnerUID = "o"
)

// Born is when all objects were created.
func Born() time.Time { return time.UnixMilli(1795219000000) }

// Owner is the Deployment "worker" with so many replicas.
func Owner(count int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": Apps, "kind": Deployment,
		"metadata": map[string]any{"name": Worker, "uid": OwnerUID, "generation": int64(1)},
		"spec":     map[string]any{"replicas": count, "selector": map[string]any{"matchLabels": map[string]any{"app": Worker}}},
	}}
}

// Assigned is the Deployment with a map that idalloc wrote last.
func Assigned(count int64, state assignment.State) *unstructured.Unstructured {
	o, annotations := Owner(count), state.Encode(assignment.DefaultKey, OwnerUID)
	o.SetAnnotations(annotations)
	return Managed(o, map[string][]string{assignment.FieldManager: slices.Collect(maps.Keys(annotations))})
}

// Managed is o after field managers wrote these of its annotations last.
func Managed(o *unstructured.Unstructured, owned map[string][]string) *unstructured.Unstructured {
	entries := make([]metav1.ManagedFieldsEntry, 0, len(owned))
	for manager, keys := range owned {
		entries = append(entries, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:` + strings.Join(keys, `":{},"f:`) + `":{}}}}`),
		})
	}
	o.SetManagedFields(entries)
	return o
}

// Untracked is o after somebody cleared its managedFields.
func Untracked(o *unstructured.Unstructured) *unstructured.Unstructured { return Managed(o, nil) }

// Pod is a running pod of the Deployment. Its UID is its name and "-uid".
func Pod(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": Pods, "status": map[string]any{"phase": "Running"},
		"metadata": map[string]any{"name": name, "uid": string(UIDOf(name)), "labels": map[string]any{"app": Worker}},
	}}
	o.SetCreationTimestamp(metav1.NewTime(Born()))
	return o
}

// UIDOf is the UID that Pod gives.
func UIDOf(name string) types.UID { return types.UID(name + "-uid") }

// Holding is a pod with a receipt and its labels.
func Holding(name string, id int, epoch int64) *unstructured.Unstructured {
	o := Pod(name)
	owner := Deployment + "/" + Worker
	o.SetAnnotations(map[string]string{assignment.ReceiptKey: assignment.Receipt{UID: string(UIDOf(name)), Owner: owner, ID: id, Epoch: epoch}.Encode()})
	labels := o.GetLabels()
	labels[assignment.InstanceIDLabel], labels[assignment.OwnerLabel] = "0", assignment.OwnerLabelValue(owner)
	o.SetLabels(labels)
	return o
}
