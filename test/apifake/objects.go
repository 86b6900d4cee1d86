package apifake

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
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

// Assigned is the Deployment with a map.
func Assigned(count int64, state assignment.State) *unstructured.Unstructured {
	o := Owner(count)
	o.SetAnnotations(state.Encode())
	return o
}

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
func Holding(name string, id int) *unstructured.Unstructured {
	o := Pod(name)
	owner := Deployment + "/" + Worker
	o.SetAnnotations(map[string]string{receipt.Key: receipt.Receipt{UID: string(UIDOf(name)), Owner: owner, State: receipt.Locks, Share: receipt.Share{ID: id}, Write: "1"}.Encode()})
	labels := o.GetLabels()
	labels[receipt.IDLabel], labels[receipt.OwnerLabel] = strconv.Itoa(id), assignment.OwnerLabelValue(owner)
	o.SetLabels(labels)
	return o
}
