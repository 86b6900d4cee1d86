package apifake

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
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

// Ref names it.
func Ref() kinds.Ref {
	return kinds.Ref{APIVersion: Apps, Kind: Deployment, Namespace: Namespace, Name: Worker}
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

// Released takes the label away that the Deployment selects.
func Released(pod *unstructured.Unstructured) *unstructured.Unstructured {
	labels := pod.GetLabels()
	delete(labels, "app")
	pod.SetLabels(labels)
	return pod
}

// UIDOf is the UID that Pod gives.
func UIDOf(name string) types.UID { return types.UID(name + "-uid") }

// Holding is a pod with a receipt and its labels.
func Holding(name string, id int) *unstructured.Unstructured {
	o := Pod(name)
	Says(o, receipt.Receipt{State: receipt.Locks, Share: receipt.Share{ID: id}, Write: "1"})
	return o
}

// Says puts a receipt onto a pod, and the labels that others find a lock by. The receipt is the pod's own, for the Deployment.
func Says(pod *unstructured.Unstructured, r receipt.Receipt) {
	r.UID, r.Owner = string(pod.GetUID()), Deployment+"/"+Worker
	if r.Write == "" {
		r.Write = "w"
	}
	pod.SetAnnotations(map[string]string{receipt.Key: r.Encode()})
	if r.State != receipt.Locks {
		return
	}
	labels := pod.GetLabels()
	labels[receipt.IDLabel], labels[receipt.OwnerLabel] = strconv.Itoa(r.Share.ID), assignment.OwnerLabelValue(r.Owner)
	pod.SetLabels(labels)
}

// ControlledBy says that an object of apps/v1 controls another one.
func ControlledBy(kind, name string, uid types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: Apps, Kind: kind, Name: name, UID: uid, Controller: new(true)}}
}

// ReplicaSet is one of the Deployment. Its UID is its name.
func ReplicaSet(name, revision string) *unstructured.Unstructured {
	o := Owner(1)
	o.SetKind("ReplicaSet")
	o.SetName(name)
	o.SetUID(types.UID(name))
	o.SetAnnotations(map[string]string{"deployment.kubernetes.io/revision": revision})
	o.SetOwnerReferences(ControlledBy(Deployment, Worker, OwnerUID))
	return o
}

// PodOf is a running pod of a ReplicaSet.
func PodOf(name, set string) *unstructured.Unstructured {
	o := Pod(name)
	o.SetOwnerReferences(ControlledBy("ReplicaSet", set, types.UID(set)))
	return o
}
