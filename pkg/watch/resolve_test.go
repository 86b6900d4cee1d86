package watch_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/watch"
	"github.com/idalloc/idalloc/test/apifake"
)

// under is the reference of something that a controller owns.
func under(apiVersion, kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "Other", Name: "x"}, {APIVersion: apiVersion, Kind: kind, Name: name, Controller: new(true)}}
}

func TestResolve(t *testing.T) {
	with := func(text string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{receipt.Key: text}}}
	}
	by := func(apiVersion, kind, name string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{OwnerReferences: under(apiVersion, kind, name)}}
	}
	further := func(group, kind, resource string) kinds.Kind {
		return kinds.Scaled(schema.GroupVersionKind{Group: group, Version: "v1alpha1", Kind: kind}, resource)
	}
	rollouts, cloneSets := further("argoproj.io", "Rollout", "rollouts"), further("apps.kruise.io", "CloneSet", "clonesets")
	good := receipt.Receipt{UID: "u", Owner: "StatefulSet/worker", State: receipt.Locks, Share: receipt.Share{ID: 3}, Write: "1"}
	waits, foreign, nameless := good, good, good
	waits.State = receipt.Waits
	foreign.UID = "an earlier pod's"
	nameless.Owner = "worker"
	for name, tc := range map[string]struct {
		pod   *metav1.PartialObjectMetadata
		above []metav1.OwnerReference // what owns the ReplicaSet worker-5d9
		kinds []kinds.Kind            // further kinds
		want  string
		is    error
		says  string
	}{
		"a StatefulSet":                             {pod: by(apifake.Apps, kinds.StatefulSet, "worker"), want: "StatefulSet/worker"},
		"a Job":                                     {pod: by("batch/v1", kinds.Job, "worker"), want: "Job/worker"},
		"a ReplicaSet alone":                        {pod: by(apifake.Apps, kinds.ReplicaSet, "worker-5d9"), want: "ReplicaSet/worker-5d9"},
		"a Deployment":                              {pod: by(apifake.Apps, kinds.ReplicaSet, "worker-5d9"), above: under(apifake.Apps, kinds.Deployment, "worker"), want: "Deployment/worker"},
		"a ReplicaSet of an operator":               {pod: by(apifake.Apps, kinds.ReplicaSet, "worker-5d9"), above: under("argoproj.io/v1alpha1", "Rollout", "worker"), is: watch.ErrUnknownOwner, says: "ReplicaSet/worker-5d9"},
		"a ReplicaSet of a further kind":            {pod: by(apifake.Apps, kinds.ReplicaSet, "worker-5d9"), above: under("argoproj.io/v1alpha1", "Rollout", "worker"), kinds: []kinds.Kind{rollouts}, want: "Rollout.argoproj.io/worker"},
		"a further kind":                            {pod: by("apps.kruise.io/v1alpha1", "CloneSet", "worker"), kinds: []kinds.Kind{rollouts, cloneSets}, want: "CloneSet.apps.kruise.io/worker"},
		"another kind of its group":                 {pod: by("apps.kruise.io/v1alpha1", "DaemonSet", "worker"), kinds: []kinds.Kind{cloneSets}, is: watch.ErrUnknownOwner},
		"a ReplicaSet of another kind":              {pod: by(apifake.Apps, kinds.ReplicaSet, "worker-5d9"), above: under(apifake.Apps, kinds.StatefulSet, "worker"), is: watch.ErrUnknownOwner, says: "apps/v1 StatefulSet/worker"},
		"a ReplicaSet that is gone":                 {pod: by(apifake.Apps, kinds.ReplicaSet, "worker-gone"), is: request.ErrGone, says: "cannot tell what owns pod worker-0"},
		"a kind that is a megabyte long":            {pod: by("v1", strings.Repeat("K", 1<<20)+"\x1b[2J", "worker"), is: watch.ErrUnknownOwner, says: "KKKK\" and 1048"},
		"a DaemonSet":                               {pod: by(apifake.Apps, "DaemonSet", "worker"), is: watch.ErrUnknownOwner, says: "pod worker-0"},
		"a kind of another group":                   {pod: by("example.com/v1", kinds.StatefulSet, "worker"), is: watch.ErrUnknownOwner, says: "example.com/v1 StatefulSet/worker"},
		"nothing":                                   {pod: &metav1.PartialObjectMetadata{}, is: watch.ErrNoController, says: "worker-0"},
		"nothing, with a receipt":                   {pod: with(good.Encode()), want: "StatefulSet/worker"},
		"nothing, with a receipt that locks none":   {pod: with(waits.Encode()), want: "StatefulSet/worker"},
		"nothing, with an earlier pod's receipt":    {pod: with(foreign.Encode()), is: watch.ErrNoController},
		"nothing, with a receipt of another writer": {pod: with(nameless.Encode()), is: watch.ErrNoController},
		"nothing, with a receipt that is nonsense":  {pod: with("{"), is: watch.ErrNoController},
	} {
		t.Run(name, func(t *testing.T) {
			server := apifake.New(t)
			rs := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apifake.Apps, "kind": kinds.ReplicaSet, "metadata": map[string]any{"name": "worker-5d9"}}}
			rs.SetOwnerReferences(tc.above)
			server.Put(rs)
			s := server.Store(t, clock.RealClock{})
			pod := tc.pod
			pod.Name, pod.Namespace, pod.UID = "worker-0", apifake.Namespace, "u"
			ref, err := watch.Resolve(t.Context(), s, pod, tc.kinds...)
			controller := metav1.GetControllerOf(pod)
			if sent := server.Requests(); len(sent) > 0 && (controller == nil || controller.Kind != kinds.ReplicaSet) {
				t.Errorf("it sent %v", sent)
			}
			if tc.is != nil {
				if !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.says) || ref != (kinds.Ref{}) {
					t.Errorf("%v, %v, want an error about %q: %v", ref, err, tc.says, tc.is)
				}
				return
			}
			if err != nil || ref.String() != tc.want || ref.Namespace != apifake.Namespace {
				t.Errorf("%v, %v, want %s", ref, err, tc.want)
			}
		})
	}
}

// If it is not known what is above a ReplicaSet, the ReplicaSet is not the answer.
func TestResolveWithoutAnAnswer(t *testing.T) {
	server := apifake.New(t)
	server.Before(func(w http.ResponseWriter, _ *http.Request) bool {
		apifake.Refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, `replicasets.apps "worker-5d9" is forbidden: User "u" cannot get resource "replicasets"`)
		return true
	})
	s := server.Store(t, clock.RealClock{})
	pod := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "worker-0", Namespace: apifake.Namespace, OwnerReferences: under(apifake.Apps, kinds.ReplicaSet, "worker-5d9"),
	}}
	ref, err := watch.Resolve(t.Context(), s, pod)
	if forbidden, is := errors.AsType[*request.ForbiddenError](err); !is || forbidden == nil || ref != (kinds.Ref{}) {
		t.Errorf("%v, %v", ref, err)
	}
}
