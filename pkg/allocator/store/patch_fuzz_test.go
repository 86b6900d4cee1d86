package store

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"testing"
	"unicode/utf8"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
)

// object is the part of an owner or a pod that patches look at or change, as the API server stores it.
type object struct {
	Metadata meta           `json:"metadata"`
	Spec     map[string]any `json:"spec"`
}

type meta struct {
	UID             string            `json:"uid"`
	Generation      int64             `json:"generation,omitempty"`
	ResourceVersion string            `json:"resourceVersion"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
}

// apply does what the API server does with a JSON Patch; ok is false when it refuses the patch.
func apply(t *testing.T, o object, body []byte) (after object, ok bool) {
	t.Helper()
	before, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		t.Fatalf("not a JSON Patch: %v: %s", err, body)
	}
	patched, err := patch.Apply(before)
	if err != nil {
		return object{}, false
	}
	if err := json.Unmarshal(patched, &after); err != nil {
		t.Fatalf("the patch %s leaves %s: %v", body, patched, err)
	}
	return after, true
}

func (o object) equals(other object) bool {
	return o.Metadata.UID == other.Metadata.UID && o.Metadata.Generation == other.Metadata.Generation &&
		o.Metadata.ResourceVersion == other.Metadata.ResourceVersion && maps.Equal(o.Metadata.Labels, other.Metadata.Labels) &&
		maps.Equal(o.Metadata.Annotations, other.Metadata.Annotations) && len(o.Spec) == len(other.Spec)
}

// readMap reads what the fuzzer says stands in an object's labels or annotations; ok is false for what
// cannot stand there. The API server stores no empty map.
func readMap(text string) (m map[string]string, ok bool) {
	if text == "" {
		return nil, true
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return nil, false
	}
	if len(m) == 0 {
		m = nil
	}
	return m, true
}

// The patch of a proposal leaves exactly the proposed state beside what others wrote, and the server
// refuses it for every other object: another UID, or another version of what the patch was planned on.
func FuzzOwnerPatch(f *testing.F) {
	f.Fuzz(func(t *testing.T, annotations, uid, version string, generation int64, deployment bool, slots, asked string, partitions uint8) {
		others, ok := readMap(annotations)
		if !ok || !utf8.ValidString(uid) || !utf8.ValidString(version) || generation == 0 { // the API server begins with 1
			return
		}
		var next assignment.State
		next.Slots, _ = assignment.ParseSlots(slots) // nil where it is none
		next.Handover, _ = assignment.ParseSlots(asked)
		if partitions > 0 {
			next.Row = &assignment.Row{Count: int(partitions), Strategy: "sticky", Owners: placement.Owners{0: placement.Between(0, int(partitions)-1)}}
		}
		from := Owner{Ref: kinds.Ref{APIVersion: testAPIVersion, Kind: kinds.StatefulSet}, UID: types.UID(uid), Generation: generation, ResourceVersion: version, Annotations: others}
		if deployment {
			from.Kind = kinds.Deployment
		}
		body, err := proposalPatch(from, next.Encode())
		if err != nil {
			t.Fatal(err)
		}
		read := object{Metadata: meta{UID: uid, Generation: generation, ResourceVersion: version, Annotations: others}, Spec: map[string]any{"replicas": 1.0}}
		want := read
		want.Metadata.Annotations = maps.Clone(others)
		maps.DeleteFunc(want.Metadata.Annotations, func(k, _ string) bool { return slices.Contains(assignment.Keys(), k) })
		if want.Metadata.Annotations == nil {
			want.Metadata.Annotations = map[string]string{}
		}
		maps.Copy(want.Metadata.Annotations, next.Encode())
		if after, ok := apply(t, read, body); !ok || !after.equals(want) {
			t.Fatalf("%s\nmakes %+v\nof    %+v (accepted: %v)\nwant  %+v", body, after, read, ok, want)
		}
		refusesOthers(t, from, read, body)
	})
}

func refusesOthers(t *testing.T, from Owner, read object, body []byte) {
	t.Helper()
	others := map[string]object{}
	change := func(what string, f func(*meta)) {
		o := read
		f(&o.Metadata)
		others[what] = o
	}
	change("another UID", func(m *meta) { m.UID += "x" })
	change("another version", func(m *meta) {
		// Whatever changes an owner changes its resourceVersion; what the generation does not show is its status.
		m.ResourceVersion += "1"
		if from.Of().Versioned {
			m.Generation++
		}
	})
	if from.Annotations == nil {
		change("annotations where there were none", func(m *meta) { m.Annotations = map[string]string{"a": "b"} })
	}
	for what, o := range others {
		if after, ok := apply(t, o, body); ok {
			t.Fatalf("%s\nis accepted by an object with %s: %+v", body, what, after)
		}
	}
	if !from.Of().Versioned {
		return
	}
	status := read
	status.Metadata.ResourceVersion += "1"
	if _, ok := apply(t, status, body); !ok {
		t.Fatalf("%s\nis refused after a change of the status only", body)
	}
}

// The patch of a receipt sets receipt, labels and cost together and nothing else, and the server refuses
// it for every other pod and for this pod with any other receipt. If another program wrote the receipt, the server refuses it for any newer
// version of the pod.
func FuzzPodPatch(f *testing.F) {
	f.Fuzz(func(t *testing.T, labels, annotations, uid, owner string, id int, kind uint8, write, other string) {
		l, okLabels := readMap(labels)
		a, okAnnotations := readMap(annotations)
		if !okLabels || !okAnnotations || !utf8.ValidString(uid) || !utf8.ValidString(owner) || !utf8.ValidString(write) || !utf8.ValidString(other) {
			return
		}
		next := receipt.Receipt{UID: uid, Owner: owner, State: []receipt.State{receipt.Waits, receipt.GaveUp, receipt.Locks}[kind%3], Share: receipt.Nothing(), Write: write}
		if next.State == receipt.Locks {
			next.Share.ID = id
		}
		read := object{Metadata: meta{UID: uid, ResourceVersion: "1", Labels: l, Annotations: a}}
		old, there := a[receipt.Key]
		wrote := other
		if kind%2 == 0 {
			wrote = old
		}
		pod := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: "1", Labels: l, Annotations: a}}
		body, err := lockPatch(pod, wrote, next)
		if err != nil {
			t.Fatal(err)
		}
		after, ok := apply(t, read, body)
		if want := meant(read, next); !ok || !after.equals(want) {
			t.Fatalf("%s\nmakes %+v\nof    %+v (accepted: %v)\nwant  %+v", body, after, read, ok, want)
		}
		foreign := read
		foreign.Metadata.UID += "x"
		if _, ok := apply(t, foreign, body); ok {
			t.Fatalf("%s\nis accepted by another pod", body)
		}
		newer := read
		newer.Metadata.ResourceVersion = "2"
		if _, ok := apply(t, newer, body); ok != (!there || old == wrote) {
			t.Fatalf("%s\nof a process that wrote %q is accepted by a newer version with the same receipt: %v", body, wrote, ok)
		}
		if there && old == other {
			return // the same receipt
		}
		late := read
		late.Metadata.Annotations = maps.Clone(a)
		if late.Metadata.Annotations == nil {
			late.Metadata.Annotations = map[string]string{}
		}
		late.Metadata.Annotations[receipt.Key] = other
		if _, ok := apply(t, late, body); ok {
			t.Fatalf("%s\nis accepted although the receipt became %q", body, other)
		}
	})
}

// meant returns the pod with a receipt and all that belongs to it.
func meant(o object, next receipt.Receipt) object {
	o.Metadata.Labels, o.Metadata.Annotations = maps.Clone(o.Metadata.Labels), maps.Clone(o.Metadata.Annotations)
	if o.Metadata.Annotations == nil {
		o.Metadata.Annotations = map[string]string{}
	}
	o.Metadata.Annotations[receipt.Key] = next.Encode()
	if next.State == receipt.Locks {
		if o.Metadata.Labels == nil {
			o.Metadata.Labels = map[string]string{}
		}
		o.Metadata.Labels[receipt.IDLabel] = strconv.Itoa(next.Share.ID)
		o.Metadata.Labels[receipt.OwnerLabel] = assignment.OwnerLabelValue(next.Owner)
		o.Metadata.Annotations[assignment.DeletionCostKey] = strconv.Itoa(math.MaxInt32 - next.Share.ID)
		return o
	}
	had, err := strconv.Atoi(o.Metadata.Labels[receipt.IDLabel])
	if err == nil && o.Metadata.Annotations[assignment.DeletionCostKey] == strconv.Itoa(math.MaxInt32-had) {
		delete(o.Metadata.Annotations, assignment.DeletionCostKey) // another one is another program's
	}
	delete(o.Metadata.Labels, receipt.IDLabel)
	delete(o.Metadata.Labels, receipt.OwnerLabel)
	return o
}
