package reconciler

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

const huge = 1_200_000

// annotationsOfAPod are those that decisions and writes look at.
func annotationsOfAPod() []string {
	return []string{
		receipt.Key, receipt.ProposalKey, receipt.IDKey, receipt.CountKey, receipt.StartCountKey, receipt.TurnKey, receipt.NumberKey, receipt.IdentityKey,
		assignment.FirstNumberKey, assignment.OnCountKey, assignment.DeletionCostKey, assignment.KeepCostKey, kinds.CompletionIndexLabel,
	}
}

// hostile is metadata that is large wherever its author can make it so.
func hostile() metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: "a", UID: "u", Annotations: map[string]string{}, Labels: map[string]string{receipt.AssignLabel: receipt.ByController}}
	for i := range 20_000 {
		m.Annotations[strconv.Itoa(i)] = ""
	}
	for _, key := range append(annotationsOfAPod(), revisionKey, "other") {
		m.Annotations[key] = strings.Repeat("1", 250_000)
	}
	m.OwnerReferences = []metav1.OwnerReference{
		{Kind: strings.Repeat("K", huge)}, {APIVersion: appsV1, Kind: strings.Repeat("K", huge), Name: strings.Repeat("n", huge), UID: "c", Controller: new(true)},
	}
	m.Finalizers, m.GenerateName = []string{strings.Repeat("f", huge)}, strings.Repeat("g", huge)
	return m
}

// The user of one namespace would fill the memory of the controller of all.
func TestWhatTheCacheKeepsOfAnObjectIsBounded(t *testing.T) {
	const most = 1 << 10
	pod := &corev1.Pod{ObjectMeta: hostile()}
	pod.Spec.Containers = []corev1.Container{{Env: []corev1.EnvVar{{Value: strings.Repeat("v", huge)}}}}
	for i := range 4000 {
		pod.Spec.SchedulingGates = append(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: fmt.Sprintf("example.com/%d", i)})
	}
	pod.Spec.SchedulingGates = append(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: receipt.Gate})
	for range 100 {
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, corev1.ContainerStatus{Name: assignment.CountWatcher, ContainerID: strings.Repeat("i", huge)})
	}
	meta := &podMeta{ObjectMeta: hostile()}
	for what, trimmed := range map[string]func() (any, error){"a pod": func() (any, error) { return trimPod(pod) }, "an owner": func() (any, error) { return trimMeta(meta) }} {
		got, err := trimmed()
		out, is := got.(client.Object)
		if err != nil || !is {
			t.Fatal(err)
		}
		if n := len(fmt.Sprintf("%+v", out)); n > 8*most {
			t.Errorf("of %s %d bytes are kept", what, n)
		}
		before := out.DeepCopyObject()
		if again, err := trimmed(); err != nil || !reflect.DeepEqual(again, before) {
			t.Errorf("%s is not the same when it is trimmed again: %v", what, err)
		}
	}
	if len(pod.Spec.SchedulingGates) != 2 || pod.OwnerReferences[0].Kind != "too large" {
		t.Errorf("kept are gates %v, and owner %v", pod.Spec.SchedulingGates, pod.OwnerReferences)
	}
	// It is refused, and never taken for another one.
	p := passOf(t, nil)
	if q := p.podOf(pod); !q.OtherGates || !q.Gated {
		t.Errorf("the pod is not refused: %+v", q)
	}
}

// What decisions and writes need of an ordinary pod is there.
func TestAnOrdinaryPodLosesNothing(t *testing.T) {
	lock := receipt.Receipt{UID: "u", Owner: own, State: receipt.Locks, Share: receipt.Share{ID: 3}, Write: "w"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "a", UID: "u", OwnerReferences: controlledBy("new", kinds.ReplicaSet), Annotations: map[string]string{receipt.Key: lock.Encode()},
	}}
	for _, key := range annotationsOfAPod() {
		if key != receipt.Key && key != receipt.ProposalKey {
			pod.Annotations[key] = "3"
		}
	}
	was := pod.DeepCopy()
	if _, err := trimPod(pod); err != nil || !reflect.DeepEqual(pod, was) {
		t.Errorf("%+v became %+v (%v)", was, pod, err)
	}
}

// The second page of an informer's list has expired.
func TestAnInformerWhosePagesExpireHasAllObjects(t *testing.T) {
	const pods = 60
	expired := false
	from := &toolscache.ListWatch{
		ListWithContextFunc: func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
			from := 0
			if o.Continue != "" {
				if !expired {
					expired = true
					return nil, apierrors.NewResourceExpired("the provided continue parameter is too old")
				}
				from, _ = strconv.Atoi(o.Continue)
			}
			to := pods
			if o.Limit > 0 {
				to = min(pods, from+int(o.Limit))
			}
			list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
			for i := from; i < to; i++ {
				list.Items = append(list.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p" + strconv.Itoa(i), Namespace: "n"}})
			}
			if to < pods {
				list.Continue = strconv.Itoa(to)
			}
			return list, nil
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if o.SendInitialEvents != nil {
				return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil)
			}
			return watch.NewFake(), nil
		},
	}
	i := newInformer(from, &corev1.Pod{}, 0, toolscache.Indexers{})
	go i.RunWithContext(t.Context())
	if !toolscache.WaitForCacheSync(t.Context().Done(), i.HasSynced) {
		t.Fatal("not synced")
	}
	if n := len(i.GetStore().ListKeys()); n != pods {
		t.Errorf("the cache has %d of %d pods, and the watch shows none of the others", n, pods)
	}
}
