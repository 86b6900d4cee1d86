package store

import (
	"errors"
	"maps"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// words are the annotations that a container reads.
func words() map[string]string {
	return map[string]string{receipt.IDKey: "3", receipt.CountKey: "5", receipt.StartCountKey: "5", receipt.IdentityKey: "{}"}
}

// begun is a receipt for slot 3 under which a program runs.
func begun() receipt.Receipt {
	r := locks()
	r.Begun, r.Write = true, "w2"
	return r
}

// gatedPod is a pod behind the gate, which users have given keys.
func gatedPod() map[string]any {
	pod := aPod(map[string]any{"a": "b"}, map[string]any{"app": "worker"})
	pod["spec"] = map[string]any{"schedulingGates": []any{map[string]any{"name": receipt.Gate}}}
	return pod
}

func isGated(s *shelf) bool {
	_, gated, _ := unstructured.NestedSlice(s.objects[podPath], "spec", "schedulingGates")
	return gated
}

func TestAGatedPodGetsItsIDAndBegins(t *testing.T) {
	server, s := newShelf(t, map[string]map[string]any{podPath: gatedPod()})
	locked, err := s.Take(t.Context(), read(t, s), locks())
	if err != nil {
		t.Fatal(err)
	}
	if locked.Annotations[receipt.Key] != locks().Encode() || locked.Annotations[assignment.DeletionCostKey] != "2147483644" || locked.Labels[receipt.IDLabel] != "3" ||
		locked.Labels[receipt.OwnerLabel] != assignment.OwnerLabelValue(testOwner) || !isGated(server) {
		t.Errorf("after T2: %v", server.objects[podPath])
	}
	running, err := s.Begin(t.Context(), locked, begun(), words(), true)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": "b", receipt.Key: begun().Encode(), assignment.DeletionCostKey: "2147483644"}
	maps.Copy(want, words())
	if !maps.Equal(running.Annotations, want) || running.Labels["app"] != "worker" || isGated(server) {
		t.Errorf("after Begin: %v", server.objects[podPath])
	}
}

func TestAWithdrawalLeavesNothingOfTheLock(t *testing.T) {
	_, s := newShelf(t, map[string]map[string]any{podPath: gatedPod()})
	locked, err := s.Take(t.Context(), read(t, s), locks())
	if err != nil {
		t.Fatal(err)
	}
	free, err := s.Take(t.Context(), locked, waits("w2"))
	if err != nil || len(free.Labels) != 1 || len(free.Annotations) != 2 || free.Annotations[receipt.Key] != waits("w2").Encode() {
		t.Errorf("after the withdrawal: %v %v, %v", free.Labels, free.Annotations, err)
	}
}

// Whatever has changed on a gated pod, the controller has decided on what is old.
func TestTheControllerWritesNoPodThatHasChanged(t *testing.T) {
	changes := map[string]func(*shelf){
		"its receipt":           func(s *shelf) { s.change(podPath, "annotations", map[string]any{receipt.Key: "other"}) },
		"a label":               func(s *shelf) { s.change(podPath, "labels", map[string]any{}) },
		"it is being deleted":   func(s *shelf) { s.change(podPath, "deletionTimestamp", "2026-01-01T00:00:00Z") },
		"another has its name":  func(s *shelf) { s.change(podPath, "uid", "other") },
		"its gate, or a status": func(s *shelf) { raise(s.objects[podPath]) },
	}
	writes := map[string]func(*Store, *metav1.PartialObjectMetadata) error{
		"T2": func(s *Store, pod *metav1.PartialObjectMetadata) error {
			_, err := s.Take(t.Context(), pod, locks())
			return err
		},
		"Begin": func(s *Store, pod *metav1.PartialObjectMetadata) error {
			_, err := s.Begin(t.Context(), pod, begun(), words(), true)
			return err
		},
	}
	for what, write := range writes {
		for changed, change := range changes {
			server, s := newShelf(t, map[string]map[string]any{podPath: gatedPod()})
			pod := read(t, s)
			change(server)
			if err := write(s, pod); !errors.Is(err, request.ErrConflict) {
				t.Errorf("%s although there is a change, %s: %v", what, changed, err)
			}
		}
		server, s := newShelf(t, map[string]map[string]any{podPath: gatedPod()})
		pod := read(t, s)
		server.refusal = &metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "a policy says no"}
		if err := write(s, pod); !errors.Is(err, request.ErrRefused) {
			t.Errorf("%s that a policy refuses: %v", what, err)
		}
		server.refusal = missing(podPath)
		if err := write(s, pod); !errors.Is(err, request.ErrGone) {
			t.Errorf("%s on a pod that is gone: %v", what, err)
		}
		server.refusal, server.admits = nil, func(o map[string]any) { metaOf(o)["labels"] = map[string]any{} }
		if err := write(s, pod); !errors.Is(err, request.ErrNotKept) {
			t.Errorf("%s whose labels admission removes: %v", what, err)
		}
	}
}
