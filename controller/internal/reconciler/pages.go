package reconciler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// pages is a Reader of the API server whose lists of pods and ReplicaSets take little memory: it reads page by page, and trims each. All pages of a list show
// the moment of the first one. Lists of pods are of whole ones: metadata does not have the gates, the node, the phase and whether the pod is Ready.
type pages struct {
	client.Reader

	store *store.Store
}

// List implements client.Reader.
func (p pages) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	var of client.ListOptions
	o := *of.ApplyOptions(options).AsListOptions()
	switch list := list.(type) {
	case *corev1.PodList:
		return p.listPods(ctx, list, of.Namespace, o)
	case *metav1.PartialObjectMetadataList:
		return p.listMetadata(ctx, list, of.Namespace, o)
	}
	return fmt.Errorf("list of %T: not one of pods or of metadata", list)
}

func (p pages) listPods(ctx context.Context, list *corev1.PodList, namespace string, o metav1.ListOptions) (err error) {
	found := map[string]corev1.Pod{}
	again := func() { clear(found); err = nil }
	wrong := p.store.EachFullPod(ctx, namespace, o, again, func(u *unstructured.Unstructured) {
		pod := corev1.Pod{}
		if bad := runtime.DefaultUnstructuredConverter.FromUnstructured(partOf(u.Object), &pod); bad != nil {
			err = fmt.Errorf("pod %s: %w", u.GetName(), bad)
			return
		}
		_, _ = trimPod(&pod)
		found[pod.Name] = pod
	})
	list.Items = slices.Collect(maps.Values(found))
	return errors.Join(err, wrong)
}

// partOf returns the fields of a pod that trimPod reads.
func partOf(pod map[string]any) map[string]any {
	part := map[string]any{"metadata": pod["metadata"]}
	for field, of := range map[string][]string{"spec": {"nodeName", "schedulingGates", "initContainers", "containers", "volumes"}, "status": {"phase", "conditions", "initContainerStatuses", "containerStatuses"}} {
		whole, _ := pod[field].(map[string]any)
		kept := map[string]any{}
		for _, key := range of {
			if value, there := whole[key]; there {
				kept[key] = value
			}
		}
		part[field] = kept
	}
	return part
}

func (p pages) listMetadata(ctx context.Context, list *metav1.PartialObjectMetadataList, namespace string, o metav1.ListOptions) error {
	resource, trim := store.Pods, func(m *metav1.PartialObjectMetadata) { trimPodMeta(&m.ObjectMeta) }
	if list.Kind == metaList(replicaSets).Kind {
		resource, trim = replicaSets.GroupVersion().WithResource("replicasets"), func(m *metav1.PartialObjectMetadata) { _, _ = trimMeta(m) }
	}
	found := map[string]metav1.PartialObjectMetadata{}
	err := p.store.EachMetadata(ctx, resource, namespace, o, func() { clear(found) }, func(m *metav1.PartialObjectMetadata) {
		trim(m)
		found[m.Name] = *m
	})
	list.Items = slices.Collect(maps.Values(found))
	return err
}
