package main

import (
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
)

const (
	namespace = "default"
	account   = "system:serviceaccount:" + namespace + ":idalloc"
	podName   = "worker-6dc99c5c6-00000"
	worker    = "worker"
	podUID    = "5f1b2c3d-0000-4000-8000-000000000000"
	// annotationsLimit is how long the policy lets a map be that is the only annotation of its workload.
	annotationsLimit = 259_072 - len("idalloc.dev/assignment")
)

// request is an update of one object.
type request struct {
	name        string
	by          user.Info
	kind        schema.GroupVersionKind
	resource    schema.GroupVersionResource
	old, object runtime.Object
}

func (r request) attributes() admission.Attributes {
	name := worker
	if r.resource.Resource == "pods" {
		name = podName
	}
	return admission.NewAttributesRecord(r.object, r.old, r.kind, namespace, name, r.resource, "", admission.Update, nil, false, r.by)
}

// requests are those that idalloc sends, on small and on the largest objects, and one of somebody else.
func requests() []request {
	pod := &user.DefaultInfo{Name: account, Extra: map[string][]string{
		"authentication.kubernetes.io/pod-name": {podName}, "authentication.kubernetes.io/pod-uid": {podUID},
	}}
	controller := &user.DefaultInfo{Name: "system:serviceaccount:kube-system:deployment-controller"}
	return []request{
		ofDeployment("map of 100 entries", pod, nil, 100*entrySize, 3),
		ofDeployment("map that fills the annotations", pod, nil, annotationsLimit, 3),
		ofDeployment("map beside 1,000 annotations", pod, others(1_000), 100*entrySize, 3),
		ofDeployment("map beside 100 appliers", pod, nil, 100*entrySize, 100),
		ofPod("receipt", pod, 0),
		ofPod("longest receipt", pod, longestReceipt),
		ofDeployment("write of a controller", controller, nil, 100*entrySize, 3),
	}
}

// entrySize is about what one entry of the map takes.
const entrySize = 60

// longestReceipt is about what the policy lets a receipt take.
const longestReceipt = 60_000

// others are n short annotations of somebody else.
func others(n int) map[string]string {
	set := map[string]string{}
	for i := range n {
		set[fmt.Sprintf("example.com/%d", i)] = "x"
	}
	return set
}

func ofDeployment(name string, by user.Info, beside map[string]string, size, appliers int) request {
	old := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Name: worker, Namespace: namespace, UID: types.UID("1"), Labels: map[string]string{"app.kubernetes.io/name": worker}, Annotations: maps.Clone(beside), ManagedFields: managers(appliers),
	}}
	old.Spec.Replicas = new(int32(1000)) // the policy gives each pod some room in the map
	old.Spec.Template.Spec = spec()
	object := old.DeepCopy()
	if object.Annotations == nil {
		object.Annotations = map[string]string{}
	}
	object.Annotations["idalloc.dev/assignment"] = strings.Repeat("x", size)
	kind := appsv1.SchemeGroupVersion.WithKind("Deployment")
	old.SetGroupVersionKind(kind)
	object.SetGroupVersionKind(kind)
	return request{name: name, by: by, kind: kind, resource: appsv1.SchemeGroupVersion.WithResource("deployments"), old: old, object: object}
}

// ofPod is the write of a receipt that has so many more bytes than the shortest.
func ofPod(name string, by user.Info, size int) request {
	old := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: podName, Namespace: namespace, UID: podUID, Labels: map[string]string{"app.kubernetes.io/name": worker}, ManagedFields: managers(2),
	}}
	old.Spec = spec()
	object := old.DeepCopy()
	object.Annotations = map[string]string{"idalloc.dev/receipt": `{"uid":"` + podUID + `","owner":"Deployment/worker","id":7,"write":"` + strings.Repeat("7", size) + `"}`, "controller.kubernetes.io/pod-deletion-cost": "-7"}
	object.Labels["idalloc.dev/instance-id"], object.Labels["idalloc.dev/owner"] = "7", "deployment.worker"
	kind := corev1.SchemeGroupVersion.WithKind("Pod")
	old.SetGroupVersionKind(kind)
	object.SetGroupVersionKind(kind)
	return request{name: name, by: by, kind: kind, resource: corev1.SchemeGroupVersion.WithResource("pods"), old: old, object: object}
}

func spec() corev1.PodSpec {
	return corev1.PodSpec{ServiceAccountName: "idalloc", Containers: []corev1.Container{{
		Name: worker, Image: "example.com/worker:1", Env: []corev1.EnvVar{{Name: "A", Value: "B"}}, VolumeMounts: []corev1.VolumeMount{{Name: "id", MountPath: "/id"}},
	}}}
}

// managers are entries of somebody who uses server-side apply, none of whose fields idalloc writes.
func managers(n int) []metav1.ManagedFieldsEntry {
	entries := make([]metav1.ManagedFieldsEntry, 0, n)
	for i := range n {
		entries = append(entries, metav1.ManagedFieldsEntry{
			Manager: fmt.Sprintf("applier-%d", i), Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(fmt.Sprintf(`{"f:metadata":{"f:labels":{"f:example.com/%d":{}}},"f:spec":{"f:replicas":{}}}`, i)),
		})
	}
	return entries
}
