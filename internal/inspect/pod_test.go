package inspect

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
)

// metadata is that field of an object.
const metadata = "metadata"

func TestWhatAPodShowsOfItsProposal(t *testing.T) {
	told := receipt.Proposal{UID: "u", Owner: identity.Owner{Kind: kinds.Deployment, Name: "w"}, Share: receipt.Nothing(), Why: "slots"}.Encode()
	of := func(uid, mark string) assigned {
		return assignedOf(&unstructured.Unstructured{Object: map[string]any{metadata: map[string]any{
			"uid": uid, "labels": map[string]any{receipt.AssignLabel: mark}, "annotations": map[string]any{receipt.ProposalKey: told},
		}}})
	}
	if a := of("u", receipt.ByAgent); !a.byAgent || a.told == nil || a.told.Why != "slots" || a.byController {
		t.Errorf("%+v", a)
	}
	if a := of("another", receipt.ByAgent); !a.byAgent || a.told != nil {
		t.Errorf("a proposal of another pod: %+v", a)
	}
	if a := of("u", receipt.ByController); a.byAgent || a.told != nil {
		t.Errorf("a pod behind the gate: %+v", a)
	}
}

// The owner proposes what the agent has from its former owner, so it stays there. Otherwise it will give that up.
func TestAnAgentCountsWhereItIsProposedWhatItHas(t *testing.T) {
	owner := settledPods(1).owner
	held := receipt.Receipt{UID: "u", Owner: "ReplicaSet/former", State: receipt.Locks, Share: receipt.Share{ID: 2}, Token: 7}
	for id, keeps := range map[int]bool{2: true, 1: false} {
		u := &unstructured.Unstructured{Object: map[string]any{metadata: map[string]any{
			"name": "a", "uid": "u",
			"labels": map[string]any{receipt.AssignLabel: receipt.ByAgent, receipt.IDLabel: "2", receipt.OwnerLabel: assignment.OwnerLabelValue(held.Owner)},
			"annotations": map[string]any{
				receipt.Key: held.Encode(), receipt.ProposalKey: receipt.Proposal{UID: "u", Owner: owner.Owner(), Share: receipt.Share{ID: id}}.Encode(),
			},
		}}}
		p := newPod(u, owner, true)
		if p.Receipt.LocksSlot(2) != keeps || (p.elsewhere.State == receipt.Locks) == keeps || p.damage != "" {
			t.Errorf("id %d is proposed: it locks %+v here, %+v elsewhere, damage %q", id, p.Receipt, p.elsewhere, p.damage)
		}
	}
}

func TestAnAgentNeedsNoRightOnItsOwner(t *testing.T) {
	owner := settledPods(1).owner.Ref
	var p pod
	p.byAgent = true
	for _, needs := range permissions(owner, p) {
		if needs.Resource != "pods" {
			t.Errorf("it needs %+v", needs)
		}
	}
	if p.byAgent = false; len(permissions(owner, p)) != 9 {
		t.Errorf("a peer needs %+v", permissions(owner, p))
	}
}

func TestWhatAPodShowsOfTheController(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		metadata: map[string]any{"labels": map[string]any{"idalloc.dev/assign": "controller"}, "annotations": map[string]any{"idalloc.dev/id": "3"}},
		"spec":   map[string]any{"schedulingGates": []any{map[string]any{"name": "example.com/x"}, map[string]any{"name": "idalloc.dev/id"}}},
	}}
	if a := assignedOf(u); !a.byController || !a.gated || a.given != "3" || strings.Join(a.gates, ",") != "example.com/x" {
		t.Errorf("%+v", a)
	}
	if a := assignedOf(&unstructured.Unstructured{Object: map[string]any{}}); a.byController || a.gated || a.given != "" || len(a.gates) > 0 {
		t.Errorf("%+v", a)
	}
}

func TestWhatIsWrongWithAContainer(t *testing.T) {
	for _, reason := range []string{"PodInitializing", "ContainerCreating"} { // it is being made
		if got := containerOf(map[string]any{"name": "main", "state": map[string]any{"waiting": map[string]any{"reason": reason}}}); len(got) > 0 {
			t.Errorf("%s: %q", reason, got)
		}
	}
	for want, status := range map[string]map[string]any{
		"container main does not start: ErrImagePull: no such image": {"name": "main", "state": map[string]any{"waiting": map[string]any{"reason": "ErrImagePull", "message": "no such image"}}},
		"container idalloc ended with exit code 4: Error: error: forbidden": {
			"name": "idalloc", "lastState": map[string]any{"terminated": map[string]any{"exitCode": int64(4), "reason": "Error", "message": "error: forbidden"}},
		},
	} {
		if got := strings.Join(containerOf(status), "\n"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
