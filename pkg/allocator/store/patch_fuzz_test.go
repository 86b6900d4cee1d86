package store

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"
	"unicode/utf8"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
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

// ours reports whether key can be where the assignment is stored: it is none of idalloc's other keys.
func ours(key string) bool {
	return key != "" && utf8.ValidString(key) && !slices.Contains(assignment.Keys(assignment.DefaultKey)[1:], key)
}

// The patch of a commit leaves exactly the planned state beside what others wrote, and the server
// refuses it for every other object: another UID, or another version of what the patch was planned on.
func FuzzOwnerPatch(f *testing.F) {
	f.Fuzz(func(t *testing.T, annotations, key, uid, version string, generation int64, deployment, tracked bool, slots, asked string) {
		others, ok := readMap(annotations)
		if !ok || !ours(key) || !utf8.ValidString(uid) || !utf8.ValidString(version) {
			return
		}
		next := assignment.State{Epoch: 7}
		next.Slots, _ = assignment.ParseSlots(slots) // nil where it is none
		next.Handover, _ = assignment.ParseSlots(asked)
		from := Owner{
			Ref: Ref{Kind: StatefulSet}, UID: types.UID(uid), Generation: generation, ResourceVersion: version,
			Annotations: others, Record: assignment.Decode(others, key, uid, time.UnixMilli(8)),
		}
		from.Trust = trust(from.Record, tracked, false)
		from.PartitionTrust = partitionTrust(from.Record.Partitions, tracked, false)
		if deployment {
			from.Kind = Deployment
		}
		body, err := ownerPatch(from, key, next)
		if err != nil {
			t.Fatal(err)
		}
		read := object{Metadata: meta{UID: uid, Generation: generation, ResourceVersion: version, Annotations: others}, Spec: map[string]any{"replicas": 1.0}}
		want := read
		want.Metadata.Annotations = maps.Clone(others)
		maps.DeleteFunc(want.Metadata.Annotations, func(k, _ string) bool { return slices.Contains(assignment.Keys(key), k) || k == from.Record.OtherKey })
		if from.PartitionTrust != assignment.Unreadable {
			maps.DeleteFunc(want.Metadata.Annotations, func(k, _ string) bool { return slices.Contains(assignment.PartitionKeys(), k) })
		}
		if want.Metadata.Annotations == nil {
			want.Metadata.Annotations = map[string]string{}
		}
		maps.Copy(want.Metadata.Annotations, next.Encode(key, uid))
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
		if from.comparesGeneration() {
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
	if !from.comparesGeneration() {
		return
	}
	status := read
	status.Metadata.ResourceVersion += "1"
	if _, ok := apply(t, status, body); !ok {
		t.Fatalf("%s\nis refused after a change of the status only", body)
	}
}

// swap is the change of a receipt as SwapReceipt asks for it.
func swap(pod meta, next *assignment.Receipt) (present []string, changes []change) {
	label, owner, receipt, cost := receiptValues(next)
	if pod.Labels != nil {
		present = append(present, "labels")
	}
	if pod.Annotations != nil {
		present = append(present, "annotations")
	}
	return present, []change{
		{field: "annotations", key: assignment.ReceiptKey, old: lookup(pod.Annotations, assignment.ReceiptKey), new: receipt, tested: true},
		{field: "annotations", key: assignment.DeletionCostKey, old: lookup(pod.Annotations, assignment.DeletionCostKey), new: cost},
		{field: "labels", key: assignment.InstanceIDLabel, old: lookup(pod.Labels, assignment.InstanceIDLabel), new: label},
		{field: "labels", key: assignment.OwnerLabel, old: lookup(pod.Labels, assignment.OwnerLabel), new: owner},
	}
}

// The patch of a receipt sets receipt, labels and cost together and nothing else, and the server refuses
// it for every other pod and for this pod with any other receipt.
func FuzzPodPatch(f *testing.F) {
	f.Fuzz(func(t *testing.T, labels, annotations, uid, owner string, id int, epoch int64, kind uint8, other string) {
		l, okLabels := readMap(labels)
		a, okAnnotations := readMap(annotations)
		if !okLabels || !okAnnotations || !utf8.ValidString(uid) || !utf8.ValidString(owner) || !utf8.ValidString(other) {
			return
		}
		next := []*assignment.Receipt{nil, {UID: uid, Owner: owner, GaveUp: true}, {UID: uid, Owner: owner, ID: id, Epoch: epoch}}[kind%3]
		read := object{Metadata: meta{UID: uid, ResourceVersion: "1", Labels: l, Annotations: a}}
		present, changes := swap(read.Metadata, next)
		body, err := podPatch(uid, present, changes)
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
		if old, there := a[assignment.ReceiptKey]; there && old == other || !there && a == nil && next == nil {
			return // the same receipt; or there is none, and none is to be written
		}
		late := read
		late.Metadata.Annotations = maps.Clone(a)
		if late.Metadata.Annotations == nil {
			late.Metadata.Annotations = map[string]string{}
		}
		late.Metadata.Annotations[assignment.ReceiptKey] = other
		if _, ok := apply(t, late, body); ok {
			t.Fatalf("%s\nis accepted although the receipt became %q", body, other)
		}
	})
}

// meant returns the pod with a receipt and all that belongs to it.
func meant(o object, next *assignment.Receipt) object {
	set := func(m map[string]string, key string, value *string) map[string]string {
		m = maps.Clone(m)
		switch {
		case value == nil:
			delete(m, key)
		case m == nil:
			m = map[string]string{key: *value}
		default:
			m[key] = *value
		}
		return m
	}
	label, owner, receipt, cost := receiptValues(next)
	if next != nil && !next.GaveUp && *label != strconv.Itoa(next.ID) {
		panic("a receipt goes with the label of its slot")
	}
	o.Metadata.Labels = set(set(o.Metadata.Labels, assignment.InstanceIDLabel, label), assignment.OwnerLabel, owner)
	o.Metadata.Annotations = set(set(o.Metadata.Annotations, assignment.ReceiptKey, receipt), assignment.DeletionCostKey, cost)
	return o
}
