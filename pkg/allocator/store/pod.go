package store

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Pods is the resource of pods.
var Pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"} //nolint:gochecknoglobals // a constant that Go cannot express

// LivePods is a field selector for pods that are neither Succeeded nor Failed. Evicted pods are Failed.
const LivePods = "status.phase!=Succeeded,status.phase!=Failed"

// GetPod reads a pod's metadata. Errors: request.ErrGone, *request.ForbiddenError, or another error that request.Temporary judges.
func (s *Store) GetPod(ctx context.Context, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	return s.getMetadata(ctx, podTarget(namespace, name))
}

// GetFullPod reads a pod with its status. Errors: as of GetPod.
func (s *Store) GetFullPod(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	return s.getWhole(ctx, podTarget(namespace, name))
}

// GetOwnPod reads a pod's metadata, and whether the pod is Graceless. Errors: as of GetPod.
func (s *Store) GetOwnPod(ctx context.Context, namespace, name string) (pod *metav1.PartialObjectMetadata, graceless bool, err error) {
	whole, err := s.GetFullPod(ctx, namespace, name)
	if err != nil {
		return nil, false, err
	}
	pod = &metav1.PartialObjectMetadata{}
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"metadata": whole.Object["metadata"]}, pod)
	return pod, Graceless(whole), err
}

// Graceless reports whether each deletion of a pod is a force delete, because its grace period is 0.
func Graceless(pod *unstructured.Unstructured) bool {
	grace, set, _ := unstructured.NestedInt64(pod.Object, "spec", "terminationGracePeriodSeconds")
	return set && grace == 0
}

// GetLivePod returns a pod's metadata, by a consistent read, or nil if there is no such pod or it is Succeeded or Failed. Errors: as of EachPod.
func (s *Store) GetLivePod(ctx context.Context, namespace, name string) (pod *metav1.PartialObjectMetadata, err error) {
	err = s.EachPod(ctx, namespace, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String() + "," + LivePods}, func(p *metav1.PartialObjectMetadata) { pod = p })
	return pod, err
}

// EachPod lists pods' metadata with a consistent read and calls do for each pod. It keeps at most one page of at most 8 MiB in memory. The first page shows
// a state after the call, and the other pages show the same state.
//
// If the server forgets that state before the last page, the list starts over, in one page. If a page is too large, it starts over with fewer pods per
// page. If the server forgets again, the one page may have any size. When the list starts over, do gets pods again, and may have got pods that are gone.
// request.Timeout bounds each page. Errors: *request.ForbiddenError, or another error that request.Temporary judges.
func (s *Store) EachPod(ctx context.Context, namespace string, o metav1.ListOptions, do func(*metav1.PartialObjectMetadata)) error {
	return s.EachMetadata(ctx, Pods, namespace, o, func() {}, do)
}

// EachFullPod is EachMetadata for whole pods.
func (s *Store) EachFullPod(ctx context.Context, namespace string, o metav1.ListOptions, again func(), do func(*unstructured.Unstructured)) error {
	return s.EachObject(ctx, Pods, namespace, o, again, do)
}
