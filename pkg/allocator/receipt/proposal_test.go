package receipt_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

func TestAProposalIsReadAsItWasWritten(t *testing.T) {
	worker := identity.Owner{APIVersion: "apps/v1", Kind: "Deployment", Name: "worker"}
	const start = `{"uid":"u1","owner":{"apiVersion":"apps/v1","kind":"Deployment","name":"worker"},"count":3`
	for want, p := range map[string]receipt.Proposal{
		start + `,"why":"slots"}`: {Count: 3, Share: receipt.Nothing(), Why: "slots"},
		start + `,"id":0}`:        {Count: 3},
		start + `,"id":2,"of":8,"partitions":"1-3","shared":true,"yield":"3","requester":"p9","madeRoom":true,"confirmed":{"write":"w","id":2,"of":8,"partitions":"1-2","otherSlot":true,"otherPartitions":"2","by":"p1"}}`: {
			Count: 3, Share: receipt.Share{ID: 2, Of: 8, Partitions: placement.Of(1, 2, 3)}, Shared: true, Yield: placement.Of(3), Requester: "p9", MadeRoom: true,
			Confirmed: &receipt.Confirmed{
				Write: "w", Share: receipt.Share{ID: 2, Of: 8, Partitions: placement.Of(1, 2)}, Slot: true, Partitions: placement.Of(2), By: "p1",
			},
		},
	} {
		p.UID, p.Owner = "u1", worker
		if got := p.Encode(); got != want {
			t.Errorf("written as %s, want %s", got, want)
		}
		got, ok := receipt.ProposalOf(told(want))
		if !ok || got.Encode() != want || fmt.Sprint(got.Share, got.Yield) != fmt.Sprint(p.Share, p.Yield) {
			t.Errorf("%s is read as %+v (%t)", want, got, ok)
		}
	}
}

func told(text string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "u1", Annotations: map[string]string{receipt.ProposalKey: text}}}
}

func TestAProposalThatMakesNoSenseSaysNothing(t *testing.T) {
	const owner = `"owner":{"apiVersion":"apps/v1","kind":"Deployment","name":"worker"}`
	for _, text := range []string{
		"", "{", `{"uid":"u1","count":3}`, `{` + owner + `,"count":3,"id":1}`, `{"uid":"u2",` + owner + `,"count":3,"id":1}`,
		`{"uid":"u1",` + owner + `,"count":-1}`, `{"uid":"u1",` + owner + `,"count":3,"id":-1}`, `{"uid":"u1",` + owner + `,"count":3,"id":1,"of":-1}`,
		`{"uid":"u1",` + owner + `,"count":3,"id":1,"partitions":"x"}`, `{"uid":"u1",` + owner + `,"count":3,"yield":"x"}`,
		`{"uid":"u1",` + owner + `,"count":3,"confirmed":{"id":2}}`, `{"uid":"u1",` + owner + `,"count":3,"confirmed":{"write":"w","id":-2}}`, `{"uid":"u1",` + owner + `,"count":3,"confirmed":{"write":"w","id":1,"otherPartitions":"x"}}`,
	} {
		if p, ok := receipt.ProposalOf(told(text)); ok {
			t.Errorf("%q is read as %+v", text, p)
		}
	}
	if p, ok := receipt.ProposalOf(&metav1.PartialObjectMetadata{}); ok || !p.Share.Empty() {
		t.Errorf("no proposal is read as %+v", p)
	}
}
