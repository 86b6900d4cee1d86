package watch

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

func testPod(uid types.UID, text, version string) *metav1.PartialObjectMetadata {
	pod := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "worker-0", UID: uid, ResourceVersion: version, Labels: map[string]string{"app": "worker"},
		Annotations: map[string]string{"other": version}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
	}}
	if text != "" {
		pod.Annotations[receipt.Key] = text
	}
	return pod
}

// deleted has the pod be deleted with so many seconds of grace.
func deleted(pod *metav1.PartialObjectMetadata, grace int64) *metav1.PartialObjectMetadata {
	end := metav1.Unix(100+grace, 0)
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &end, &grace
	return pod
}

// A stream that trims tells of a change of what it keeps, and of nothing else.
func TestATrimmedStreamTellsOfWhatItKeeps(t *testing.T) {
	s := &PodStream{
		objects: map[string]*metav1.PartialObjectMetadata{}, changed: make(chan struct{}, 1), now: time.Now, trim: trimPod, same: samePod,
	}
	k := (*sink[*metav1.PartialObjectMetadata])(s)
	for _, step := range []struct {
		name string
		do   func() error
		told bool
	}{
		{"a list", func() error { return k.Replace([]any{testPod("1", "", "1")}, "1") }, true},
		{"a pod's status", func() error { return k.Update(testPod("1", "", "2")) }, false},
		{"its receipt", func() error { return k.Update(testPod("1", "r", "3")) }, true},
		{"its status again", func() error { return k.Update(testPod("1", "r", "4")) }, false},
		{"another receipt", func() error { return k.Update(testPod("1", "s", "5")) }, true},
		{"the receipt is gone", func() error { return k.Update(testPod("1", "", "6")) }, true},
		{"another pod of that name", func() error { return k.Update(testPod("2", "", "7")) }, true},
		{"its end", func() error { return k.Delete(testPod("2", "", "8")) }, true},
		{"a new pod", func() error { return k.Add(testPod("3", "r", "9")) }, true},
		{"its deletion", func() error { return k.Update(deleted(testPod("3", "r", "10"), 30)) }, true},
		{"its status, while it ends", func() error { return k.Update(deleted(testPod("3", "r", "11"), 30)) }, false},
		{"its deletion with less grace", func() error { return k.Update(deleted(testPod("3", "r", "12"), 5)) }, true},
		{"the same list", func() error { return k.Replace([]any{testPod("3", "r", "9")}, "9") }, true},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		told := false
		select {
		case <-s.Changed():
			told = true
		default:
		}
		if told != step.told {
			t.Errorf("%s: told %t, want %t", step.name, told, step.told)
		}
	}
	pod, ok := s.Get("worker-0")
	if !ok || pod.UID != "3" || pod.Annotations[receipt.Key] != "r" || len(pod.Annotations) != 1 || pod.Labels != nil || pod.ManagedFields != nil {
		t.Errorf("kept %+v", pod)
	}
}

// The reflector collects all pods before it passes them on.
func TestWhatTheReflectorCollectsIsTrimmed(t *testing.T) {
	pod := testPod("1", "r", "7")
	for name, trims := range map[string]bool{"a stream that trims": true, "one that does not": false} {
		k := &sink[*metav1.PartialObjectMetadata]{}
		if trims {
			k.trim = trimPod
		}
		got, err := k.Transformer()(pod)
		if kept, is := got.(*metav1.PartialObjectMetadata); err != nil || !is || (kept.ManagedFields == nil) != trims || kept.ResourceVersion != "7" {
			t.Errorf("%s keeps %+v, %v", name, got, err)
		}
	}
}
