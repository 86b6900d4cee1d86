package reconciler

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// The cache keeps a bounded part of each object: an object may have more than a megabyte, and its author chooses where.
const (
	// tooLargeKey is an annotation that exists only in the cache. A pod has it if one of its annotations was cut, and its value describes that. Such a pod gets
	// no id.
	tooLargeKey = ownKeys + "too-large"
	// readsStartCountKey is an annotation that exists only in the cache. A pod has it if something in the pod reads receipt.StartCountKey.
	readsStartCountKey = ownKeys + "reads-start-count"
	// longest is the longest annotation that is kept, in bytes; receipts and proposals have a limit of their own. longestName is the same for names, kinds and
	// versions.
	longest, longestName = 4 << 10, 512
	// listPage is the page size of an informer's list if the API server does not stream lists. Each page is read whole.
	listPage = 25
)

// trimPod keeps the part of a pod that decisions need: a cache of ten thousand whole pods would take hundreds of megabytes.
func trimPod(o any) (any, error) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	spec := corev1.PodSpec{NodeName: pod.Spec.NodeName}
	ours, others := false, false
	for _, gate := range pod.Spec.SchedulingGates { // one of ours and one other gate are enough
		mine := gate.Name == receipt.Gate
		if mine && !ours || !mine && !others {
			spec.SchedulingGates = append(spec.SchedulingGates, gate)
		}
		ours, others = ours || mine, others || !mine
	}
	status := corev1.PodStatus{Phase: pod.Status.Phase}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			status.Conditions = []corev1.PodCondition{{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}}
		}
	}
	for i, c := range pod.Status.InitContainerStatuses {
		if c.Name == assignment.CountWatcher {
			status.InitContainerStatuses = trimContainers(pod.Status.InitContainerStatuses[i:])
			status.ContainerStatuses = trimContainers(pod.Status.ContainerStatuses)
		}
	}
	reads := readsStartCount(pod)
	pod.Spec, pod.Status = spec, status
	trimPodMeta(&pod.ObjectMeta)
	if reads {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, readsStartCountKey, "")
	}
	return pod, nil
}

// trimContainers keeps the first container's id.
func trimContainers(list []corev1.ContainerStatus) []corev1.ContainerStatus {
	if len(list) == 0 {
		return nil
	}
	id := list[0].ContainerID
	return []corev1.ContainerStatus{{Name: list[0].Name, ContainerID: id[:min(len(id), longestName)]}}
}

// readsStartCount reports whether something in the pod reads the annotation receipt.StartCountKey. It also works on a trimmed pod.
func readsStartCount(pod *corev1.Pod) bool {
	is := func(f *corev1.ObjectFieldSelector) bool {
		return f != nil && f.FieldPath == "metadata.annotations['"+receipt.StartCountKey+"']"
	}
	for c := range slices.Values(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)) {
		if slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.ValueFrom != nil && is(e.ValueFrom.FieldRef) }) {
			return true
		}
	}
	for v := range slices.Values(pod.Spec.Volumes) {
		if v.DownwardAPI != nil && slices.ContainsFunc(v.DownwardAPI.Items, func(i corev1.DownwardAPIVolumeFile) bool { return is(i.FieldRef) }) {
			return true
		}
	}
	_, was := pod.Annotations[readsStartCountKey]
	return was && len(pod.Spec.Containers) == 0
}

func trimPodMeta(m *metav1.ObjectMeta) {
	trimObject(m)
	m.Labels = keep(m.Labels, receipt.AssignLabel, receipt.IDLabel, receipt.OwnerLabel, kinds.PodIndexLabel, kinds.CompletionIndexLabel, kinds.RevisionLabel)
	was := m.Annotations[tooLargeKey]
	m.Annotations = keep(m.Annotations, receipt.Key, receipt.ProposalKey, receipt.IDKey, receipt.CountKey, receipt.StartCountKey, receipt.TurnKey, receipt.IdentityKey,
		receipt.NumberKey, assignment.FirstNumberKey, assignment.OnCountKey, assignment.DeletionCostKey, assignment.KeepCostKey, kinds.CompletionIndexLabel)
	for _, key := range slices.Sorted(maps.Keys(m.Annotations)) {
		text := m.Annotations[key]
		cut := receipt.Kept(text)
		if key != receipt.Key && key != receipt.ProposalKey && len(text) > longest {
			cut = fmt.Sprintf("%d bytes", len(text))
		}
		if cut != text {
			m.Annotations[key], was = cut, fmt.Sprintf("annotation %s has %d bytes", key, len(text))
		}
	}
	if was != "" { // also for a pod that is trimmed again, or whose author set the annotation
		m.Annotations[tooLargeKey] = was[:min(len(was), longestName)]
	}
}

// trimObject keeps the bounded part of an object's metadata, and its controller.
func trimObject(m *metav1.ObjectMeta) {
	m.ManagedFields, m.Finalizers, m.GenerateName = nil, nil, ""
	c := metav1.GetControllerOf(m) // a copy: the rest may be large
	if m.OwnerReferences = nil; c == nil {
		return
	}
	// No real object is such a controller. Replace it by one of an unknown kind, which settlePod reports.
	if max(len(c.APIVersion), len(c.Kind), len(c.Name), len(c.UID)) > longestName {
		*c = metav1.OwnerReference{APIVersion: "v1", Kind: "too large", Name: "too-large", UID: "too-large", Controller: c.Controller}
	}
	m.OwnerReferences = []metav1.OwnerReference{*c}
}

// keep returns a new map with only these keys: a map from which keys are deleted does not shrink. An empty map stays a map: a patch cannot add a key to nil.
func keep(m map[string]string, keys ...string) map[string]string {
	if m == nil {
		return nil
	}
	kept := map[string]string{}
	for _, k := range keys {
		if v, there := m[k]; there {
			kept[k] = v
		}
	}
	return kept
}

// trimMeta keeps the part of an owner's or ReplicaSet's metadata that identifies it and changes when that matters. A second call changes nothing.
func trimMeta(o any) (any, error) {
	m, ok := o.(*metav1.PartialObjectMetadata)
	if !ok {
		return o, nil
	}
	kept := map[string]string{hashKey: hashOf(m.Annotations)}
	if number, there := m.Annotations[revisionKey]; there && len(number) <= longestName {
		kept[revisionKey] = number
	}
	trimObject(&m.ObjectMeta)
	m.Labels, m.Annotations = keep(m.Labels, receipt.AssignLabel), kept
	return m, nil
}

// hashOf returns a hash of the annotations that matter. It returns the same for the annotations that trimMeta left.
func hashOf(annotations map[string]string) string {
	h, others := fnv.New64a(), false
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		others = others || key != hashKey && key != revisionKey
		if strings.HasPrefix(key, ownKeys) || key == revisionKey {
			_, _ = fmt.Fprintf(h, "%s=%s\n", key, annotations[key])
		}
	}
	if was := annotations[hashKey]; was != "" && len(was) <= longestName && !others {
		return was
	}
	return strconv.FormatUint(h.Sum64(), 36)
}

// newInformer is NewSharedIndexInformer with lists that take little memory. If the server does not stream lists, it otherwise sends all objects in one piece,
// and an informer trims objects only after it has read them.
func newInformer(from toolscache.ListerWatcher, of runtime.Object, resync time.Duration, by toolscache.Indexers) toolscache.SharedIndexInformer {
	trim := trimMeta
	if _, pods := of.(*corev1.Pod); pods {
		trim = trimPod
	}
	both := toolscache.ToListerWatcherWithContext(from)
	return toolscache.NewSharedIndexInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.Limit, o.ResourceVersion, o.ResourceVersionMatch = listPage, "", "" // the server's cache has no pages
			list, err := both.ListWithContext(ctx, o)
			switch {
			case o.Continue != "" && apierrors.IsResourceExpired(err): // otherwise client-go would take the next first page for the whole list
				return nil, errors.New("the list took too long and starts again: " + err.Error())
			case err != nil:
				return nil, err
			}
			return list, meta.EachListItem(list, func(o runtime.Object) error {
				_, err := trim(o)
				return err
			})
		},
		WatchFuncWithContext: both.WatchWithContext,
	}, of, resync, by)
}
