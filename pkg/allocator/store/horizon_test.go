package store

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// One pod's clock is a year ahead. What it wrote is no damage to the others, or all of them would undo it for ever.
func TestACleanEpochFromTheFutureCounts(t *testing.T) {
	ahead := testTime.Add(365 * 24 * time.Hour)
	state := assignment.State{Slots: assignment.Slots{0: "a"}, UIDs: assignment.Slots{0: "0b7d7f3e"}, Epoch: ahead.UnixMilli(),
		Quarantine: assignment.Quarantine{{From: 1, To: 1, Epoch: ahead.UnixMilli()}}}
	count := 1
	object := func(manager string) *Object {
		return &Object{
			ObjectMeta: metav1.ObjectMeta{
				UID: "o", Annotations: state.Encode(assignment.DefaultKey, "o"),
				ManagedFields: []metav1.ManagedFieldsEntry{{
					Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate,
					FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:` + assignment.SealKey + `":{}}}}`),
				}},
			},
			Spec: spec{Replicas: &count, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}},
		}
	}
	ref := Ref{Kind: StatefulSet, Name: testName}
	ours, err := DecodeOwner(ref, object(assignment.FieldManager), assignment.DefaultKey, testTime, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !ours.Clean() || ours.Record.State.Epoch != state.Epoch || len(ours.Record.State.Quarantine) != 1 {
		t.Errorf("idalloc's own epoch is damage: %+v", ours.Record)
	}
	receipt := assignment.Receipt{UID: "u", Owner: ref.String(), ID: 0, Epoch: state.Epoch}
	annotations := map[string]string{assignment.ReceiptKey: receipt.Encode()}
	if r, err := assignment.ReceiptOf(annotations, "u", ref.String(), ours.Horizon(testTime)); err != nil || r.Epoch != state.Epoch {
		t.Errorf("a receipt of that epoch is %v, %v", r, err)
	}
	theirs, err := DecodeOwner(ref, object("kubectl-edit"), assignment.DefaultKey, testTime, &ours)
	if err != nil {
		t.Fatal(err)
	}
	if theirs.Clean() || theirs.Record.State.Epoch != 0 || !theirs.Horizon(testTime).Equal(testTime) {
		t.Errorf("somebody else's epoch from the future counts: %+v", theirs.Record)
	}
}
