package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// entry is what a manager owns of an owner's annotations.
func entry(manager string, operation metav1.ManagedFieldsOperationType, at time.Time, keys ...string) metav1.ManagedFieldsEntry {
	owned := make([]string, 0, len(keys))
	for _, key := range keys {
		owned = append(owned, fmt.Sprintf("%q:{}", "f:"+key))
	}
	raw := `{"f:metadata":{"f:annotations":{".":{},` + strings.Join(owned, ",") + `}}}`
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, Time: &metav1.Time{Time: at}, FieldsV1: metav1.NewFieldsV1(raw),
	}
}

// tampered is a Deployment whose annotations are ours but for what change does to them, with these managedFields.
func tampered(t *testing.T, change func(map[string]string), fields ...metav1.ManagedFieldsEntry) Owner {
	t.Helper()
	state := assignment.State{Slots: assignment.Slots{0: "worker-a"}, Epoch: testTime.UnixMilli()}
	annotations := state.Encode(assignment.DefaultKey, "")
	change(annotations)
	object := &Object{}
	object.Annotations, object.ManagedFields = annotations, fields
	object.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": testName}}
	o, err := DecodeOwner(Ref{APIVersion: testAPIVersion, Kind: Deployment, Name: testName}, object, assignment.DefaultKey, testTime, nil)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestTamperingNamesAnnotationsAndWriter(t *testing.T) {
	const update, apply = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	swap := func(a map[string]string) { a[assignment.DefaultKey] = `{"0":"worker-b"}` }
	early, late := testTime.Add(-time.Hour), testTime
	us := func(keys ...string) metav1.ManagedFieldsEntry {
		return entry(assignment.FieldManager, update, early, keys...)
	}
	for name, tc := range map[string]struct {
		owner Owner
		says  []string
	}{
		"one key set by hand": {
			tampered(t, swap, us(assignment.EpochKey, assignment.SealKey), entry("kubectl-annotate", update, late, assignment.DefaultKey)),
			[]string{`annotation idalloc.dev/assignment was set by field manager "kubectl-annotate" (Update) at ` + late.UTC().Format(time.RFC3339)},
		},
		"two keys applied, and another writer before": {
			tampered(t, swap, us(assignment.HandoverKey), entry("hand", update, early, assignment.SealKey),
				entry("argocd", apply, late, assignment.DefaultKey, assignment.EpochKey, "example.com/other")),
			[]string{`annotations idalloc.dev/assignment and idalloc.dev/epoch were set by field manager "argocd" (Apply)`, `; annotation idalloc.dev/seal was set by field manager "hand"`},
		},
		"the scale subresource": {
			tampered(t, swap, us(assignment.SealKey), subresource(entry("scaler", update, late, assignment.DefaultKey))),
			[]string{`set by field manager "scaler" (Update of scale) at `},
		},
		"the seal removed": {
			tampered(t, func(a map[string]string) { delete(a, assignment.SealKey) }, us(assignment.DefaultKey, assignment.EpochKey)),
			[]string{"annotation idalloc.dev/seal was removed by somebody whom metadata.managedFields do not name"},
		},
		"a sealed key removed that need not be there": {
			tampered(t, func(a map[string]string) { a[assignment.SealKey] += "x" }, us(assignment.DefaultKey, assignment.EpochKey, assignment.SealKey)),
			[]string{"an annotation that idalloc.dev/seal seals was removed"},
		},
	} {
		got := tc.owner.Tampering(assignment.DefaultKey)
		for _, part := range tc.says {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %q lacks %q", name, got, part)
			}
		}
		if tc.owner.Clean() {
			t.Errorf("%s: the map is clean", name)
		}
	}
	bystander := entry("helm", update, late, "example.com/other")
	if o := tampered(t, swap, bystander, entry("hand", update, late, assignment.DefaultKey)); len(o.Writers) != 1 || o.Writers[0].Manager != "hand" {
		t.Errorf("only one manager set what is idalloc's, and the writers are %v", o.Writers)
	}
	clean := tampered(t, func(map[string]string) {}, us(assignment.SealKey), entry("hand", update, late, assignment.UIDsKey))
	if !clean.Clean() || clean.Writers != nil {
		t.Errorf("a clean map has writers %v", clean.Writers)
	}
}

func subresource(e metav1.ManagedFieldsEntry) metav1.ManagedFieldsEntry {
	e.Subresource = "scale"
	return e
}

// The log says the same sentence of the same writers, so that nobody reads it again at each of their writes.
func TestCulpritsAreTheSameAtEachWrite(t *testing.T) {
	at := func(when time.Time) Owner {
		return tampered(t, func(a map[string]string) { a[assignment.DefaultKey] = "{}" }, entry("hand", metav1.ManagedFieldsOperationUpdate, when, assignment.DefaultKey))
	}
	early, late := at(testTime.Add(-time.Hour)), at(testTime)
	first, second := early.Culprits(assignment.DefaultKey), late.Culprits(assignment.DefaultKey)
	if first != second || !strings.Contains(first, `"hand" (Update)`) {
		t.Errorf("%q, and later %q", first, second)
	}
	if said := late.Tampering(assignment.DefaultKey); !strings.Contains(said, " at "+testTime.UTC().Format(time.RFC3339)) {
		t.Errorf("the time is gone: %q", said)
	}
}

func TestOnlyAnUndoIsAnUndo(t *testing.T) {
	const update, apply = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	all := []string{assignment.DefaultKey, assignment.EpochKey, assignment.SealKey}
	whole := func(map[string]string) {}
	set := tampered(t, whole, entry("kubectl", update, testTime, all...))
	set.Kind = StatefulSet // its revisions have no annotations
	for name, tc := range map[string]struct {
		owner Owner
		want  bool
	}{
		"of a StatefulSet":          {set, false},
		"by a subresource":          {tampered(t, whole, subresource(entry("kubectl", update, testTime, all...))), false},
		"kubectl rollout undo":      {tampered(t, whole, entry("kubectl", update, testTime, all...)), true},
		"by another name":           {tampered(t, whole, entry("kubectl-rollout", update, testTime, all...)), true},
		"kubectl edit":              {tampered(t, whole, entry("kubectl-edit", update, testTime, all...)), false},
		"server-side apply":         {tampered(t, whole, entry("kubectl", apply, testTime, all...)), false},
		"a controller":              {tampered(t, whole, entry("sync-controller", update, testTime, all...)), false},
		"an undo and somebody else": {tampered(t, whole, entry("kubectl", update, testTime, all[:2]...), entry("hand", update, testTime, all[2])), false},
		"what cannot be read":       {tampered(t, func(a map[string]string) { a[assignment.EpochKey] = "soon" }, entry("kubectl", update, testTime, all...)), false},
	} {
		if got := tc.owner.Undone(); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestFenceAfterIsOursUntilSomebodyElseSetsIt(t *testing.T) {
	const update = metav1.ManagedFieldsOperationUpdate
	fence := func(a map[string]string) { a[assignment.FenceAfterKey] = "30s" }
	for name, tc := range map[string]struct {
		fields []metav1.ManagedFieldsEntry
		ours   bool
	}{
		"somebody set another key": {[]metav1.ManagedFieldsEntry{
			entry(assignment.FieldManager, update, testTime, assignment.FenceAfterKey), entry("kubectl", update, testTime, assignment.SealKey),
		}, true},
		"somebody set it": {[]metav1.ManagedFieldsEntry{
			entry(assignment.FieldManager, update, testTime, assignment.SealKey), entry("kubectl", update, testTime, assignment.FenceAfterKey),
		}, false},
		"nobody is known": {nil, false},
	} {
		if got := tampered(t, fence, tc.fields...).FenceOurs; got != tc.ours {
			t.Errorf("%s: ours is %t", name, got)
		}
	}
}
