package store

import (
	"errors"
	"testing"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/identity"
)

func proposes(count int, confirmed *receipt.Confirmed) receipt.Proposal {
	return receipt.Proposal{
		UID: "u1", Owner: identity.Owner{APIVersion: "apps/v1", Kind: "Deployment", Name: testName}, Count: count, Share: receipt.Share{ID: 1}, Confirmed: confirmed,
	}
}

func TestAProposalIsWrittenOverTheOneThatIsKnown(t *testing.T) {
	_, s := newShelf(t, map[string]map[string]any{podPath: aPod(nil, nil)})
	first := read(t, s)
	if _, err := s.SetProposal(t.Context(), first, "", proposes(3, nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SetProposal(t.Context(), first, "", proposes(4, nil)); !errors.Is(err, request.ErrConflict) {
		t.Errorf("a late proposal: %v", err)
	}
	second := read(t, s)
	if got := second.Annotations[receipt.ProposalKey]; got != proposes(3, nil).Encode() {
		t.Errorf("the pod is told %s", got)
	}
	if _, err := s.SetProposal(t.Context(), second, "", proposes(4, nil)); err != nil {
		t.Errorf("the next proposal: %v", err)
	}
}

// What T3 has shown of a receipt is said only while that stands.
func TestOnlyTheReceiptThatT3ShowedIsConfirmed(t *testing.T) {
	server, s := newShelf(t, map[string]map[string]any{podPath: aPod(map[string]any{receipt.Key: locks().Encode()}, nil)})
	pod := read(t, s)
	next := proposes(3, &receipt.Confirmed{Write: "w1", Share: receipt.Share{ID: 3}})
	server.change(podPath, "annotations", map[string]any{receipt.Key: waits("w2").Encode()})
	if _, err := s.SetProposal(t.Context(), pod, locks().Encode(), next); !errors.Is(err, request.ErrConflict) {
		t.Errorf("its receipt is another one by now, and the write ends with %v", err)
	}
	if _, err := s.SetProposal(t.Context(), pod, "", proposes(3, nil)); err != nil {
		t.Errorf("what confirms nothing does not ask for a receipt: %v", err)
	}
	server.change(podPath, "annotations", map[string]any{receipt.Key: locks().Encode()})
	if _, err := s.SetProposal(t.Context(), read(t, s), locks().Encode(), next); err != nil {
		t.Error(err)
	}
}

func TestAnAgentsProposalThatIsNotKept(t *testing.T) {
	server, s := newShelf(t, map[string]map[string]any{podPath: aPod(nil, nil)})
	server.admits = func(o map[string]any) {
		delete(metaOf(o)["annotations"].(map[string]any), receipt.ProposalKey) //nolint:errcheck,forcetypeassert // it was written
	}
	if _, err := s.SetProposal(t.Context(), read(t, s), "", proposes(3, nil)); !errors.Is(err, request.ErrNotKept) {
		t.Errorf("%v", err)
	}
}
