package store

import (
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

func withPartitions() assignment.State {
	return assignment.State{
		Slots: assignment.Slots{0: "a"}, UIDs: assignment.Slots{0: "0b7d7f3e"}, Epoch: 9,
		Partitions: &assignment.Partitions{Count: 4, Strategy: "sticky", Owners: placement.Owners{0: placement.Between(0, 3)}, Epoch: 7},
	}
}

// A write of the slots leaves the partitions as they are, and the other way round both are written.
func TestPartitionsAreWrittenWhenTheyChange(t *testing.T) {
	update := metav1.ManagedFieldsOperationUpdate
	s := withPartitions()
	from := ownerOf(t, s, nil, wrote(assignment.FieldManager, update, assignment.SealKey, assignment.PartitionSealKey))
	if !from.PartitionsClean() {
		t.Fatalf("slots %s, partitions %s", from.Trust, from.PartitionTrust)
	}
	patch := func(from Owner, next assignment.State) string {
		body, err := ownerPatch(from, assignment.DefaultKey, next)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	next := s.Clone()
	next.Epoch = 10
	if got := patch(from, next); strings.Contains(got, `sticky`) {
		t.Errorf("partitions that stay are written: %s", got)
	}
	next.Partitions.Epoch = 10
	if got := patch(from, next); strings.Contains(got, `sticky`) || !strings.Contains(got, `partition-seal","value":"1:10:`) {
		t.Errorf("a decision for the same owners does not get its seal alone: %s", got)
	}
	next.Partitions.Owners[0] = placement.Between(0, 2)
	if got := patch(from, next); !strings.Contains(got, `sticky`) || !strings.Contains(got, `"1:10:`) {
		t.Errorf("partitions that change are not written: %s", got)
	}
	next.Partitions = nil
	if got := patch(from, next); strings.Count(got, `"remove"`) != 2 {
		t.Errorf("partitions that end are not removed: %s", got)
	}
	empty := ownerOf(t, s, map[string]string{assignment.PartitionOwnersKey: ""}, wrote(assignment.FieldManager, update, assignment.SealKey, assignment.PartitionSealKey))
	if got := patch(empty, next); strings.Count(got, `"remove"`) != 2 {
		t.Errorf("an empty row stays: %s", got)
	}
	newer := ownerOf(t, s, map[string]string{assignment.PartitionSealKey: "2:7:more"}, wrote(assignment.FieldManager, update, assignment.SealKey, assignment.PartitionSealKey))
	if got := patch(newer, next); strings.Contains(got, "partition") {
		t.Errorf("what a newer version wrote is touched: %s", got)
	}
}

// A write that decides nothing about partitions, such as that of a sweep, does not seal what somebody else wrote there.
func TestAWriteOfTheSlotsDoesNotSealPartitions(t *testing.T) {
	update := metav1.ManagedFieldsOperationUpdate
	s := withPartitions()
	row := assignment.Partitions{Count: 4, Strategy: "sticky", Owners: placement.Owners{1: placement.Between(0, 3)}}.Encode()
	for name, damage := range map[string]map[string]string{
		"another row": {assignment.PartitionOwnersKey: row},
		"no seal":     {assignment.PartitionSealKey: ""},
	} {
		from := ownerOf(t, s, damage, wrote(assignment.FieldManager, update, assignment.SealKey, assignment.PartitionSealKey))
		if from.PartitionTrust != assignment.Foreign {
			t.Fatalf("%s: the partitions are %s", name, from.PartitionTrust)
		}
		next := from.Record.State.Clone()
		next.Epoch++
		body, err := ownerPatch(from, assignment.DefaultKey, next)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(body), "partition") {
			t.Errorf("%s: %s", name, body)
		}
	}
}

func TestWhoElseWroteThePartitionsIsNamed(t *testing.T) {
	update := metav1.ManagedFieldsOperationUpdate
	ours := wrote(assignment.FieldManager, update, assignment.SealKey, assignment.PartitionSealKey)
	o := ownerOf(t, withPartitions(), map[string]string{assignment.PartitionOwnersKey: "{}"}, ours, wrote("helm", update, assignment.PartitionOwnersKey))
	if got, want := o.PartitionTampering(), "annotation idalloc.dev/partition-owners was set by field manager \"helm\" (Update)"; !o.Clean() || o.PartitionTrust != assignment.Foreign || got != want {
		t.Errorf("slots %s, partitions %s: it says %q, want %q", o.Trust, o.PartitionTrust, got, want)
	}
	if o := ownerOf(t, withPartitions(), nil, ours, wrote("kubectl", update, assignment.PartitionCountKey)); o.PartitionWriters != nil {
		t.Errorf("nobody else wrote what idalloc writes, and %v are named", o.PartitionWriters)
	}
}

// Partitions that somebody else changed make every write test the resourceVersion, as a map does that somebody else changed.
func TestForeignPartitionsTestTheVersion(t *testing.T) {
	update := metav1.ManagedFieldsOperationUpdate
	ours := wrote(assignment.FieldManager, update, assignment.SealKey)
	both := wrote(assignment.FieldManager, update, assignment.SealKey, assignment.PartitionSealKey)
	theirs := wrote("kubectl", update, assignment.PartitionSealKey)
	for name, tc := range map[string]struct {
		fields     []metav1.ManagedFieldsEntry
		generation bool
	}{
		"ours":            {[]metav1.ManagedFieldsEntry{both}, true},
		"somebody else's": {[]metav1.ManagedFieldsEntry{ours, theirs}, false},
	} {
		if o := ownerOf(t, withPartitions(), nil, tc.fields...); !o.Clean() || o.PartitionsClean() != tc.generation || o.comparesGeneration() != tc.generation {
			t.Errorf("%s: slots %s, partitions %s, compares the generation: %t", name, o.Trust, o.PartitionTrust, o.comparesGeneration())
		}
	}
}

// The server forgets who wrote the partitions when it forgets who wrote the slots.
func TestAncientPartitions(t *testing.T) {
	const merged = "ancient-changes"
	one := 1
	s := &Store{Key: assignment.DefaultKey, Clock: testclock.NewFakeClock(testTime)}
	unsealed := false
	decode := func(state assignment.State, slots, partitions string) Owner {
		object := &Object{
			ObjectMeta: metav1.ObjectMeta{UID: "o", Generation: 7, Annotations: state.Encode(s.Key, "o")},
			Spec:       spec{Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}},
		}
		if unsealed {
			delete(object.Annotations, assignment.PartitionSealKey)
		}
		update := metav1.ManagedFieldsOperationUpdate
		object.ManagedFields = []metav1.ManagedFieldsEntry{wrote(slots, update, assignment.SealKey), wrote(partitions, update, assignment.PartitionSealKey)}
		o, err := s.Decode(Ref{Kind: Deployment, Name: testName}, object, nil)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	if o := decode(withPartitions(), merged, merged); o.PartitionsClean() {
		t.Error("what this process never saw clean is clean")
	}
	decode(withPartitions(), assignment.FieldManager, "kubectl")
	if o := decode(withPartitions(), merged, merged); !o.Clean() || o.PartitionsClean() {
		t.Errorf("the slots were clean, the partitions were not: %s, %s", o.Trust, o.PartitionTrust)
	}
	decode(withPartitions(), assignment.FieldManager, assignment.FieldManager)
	if o := decode(withPartitions(), merged, merged); !o.PartitionsClean() {
		t.Errorf("this process saw both clean: %s, %s", o.Trust, o.PartitionTrust)
	}
	unsealed = true
	decode(withPartitions(), assignment.FieldManager, "kubectl")
	if o := decode(withPartitions(), merged, merged); !o.Clean() || o.PartitionsClean() {
		t.Errorf("nobody sealed the partitions: %s, %s", o.Trust, o.PartitionTrust)
	}
}

// What the user wishes is read with the map.
func TestTheUsersWish(t *testing.T) {
	wish := map[string]string{assignment.PartitionCountKey: "64"}
	ours := wrote(assignment.FieldManager, metav1.ManagedFieldsOperationUpdate, assignment.SealKey)
	if o := ownerOf(t, assignment.State{Epoch: 9}, wish, ours); !reflect.DeepEqual(o.Wish, assignment.DecodeWish(wish)) || reflect.DeepEqual(o.Wish, assignment.DecodeWish(nil)) {
		t.Errorf("%+v", o.Wish)
	}
}
