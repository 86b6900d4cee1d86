package inspect

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
)

// agent adds pod z, which waits for an id that the controller proposes. Without a kind the controller has said nothing yet.
func (n snapshot) agent(kind string) {
	n.add("z")
	n.edit("z", func(p *pod) {
		p.byAgent = true
		if kind != "" {
			p.told = &receipt.Proposal{UID: p.UID, Owner: identity.Owner{Kind: kind, Name: n.owner.Name}, Share: receipt.Nothing(), Why: "slots"}
			p.Receipt = waiting()
		}
	})
}

func TestWhatVerifyFindsAboutAgents(t *testing.T) {
	checkAll(t, map[string]checked{
		"the controller has just not got to it": {change: func(n *snapshot) { n.agent(""); n.now = time.Unix(4, 0) }},
		"the controller is away": {
			change: func(n *snapshot) { n.agent(""); n.now = time.Unix(100, 0) },
			want:   []brief{{Untold, -1, "z"}}, says: []string{"proposed nothing to pod z", "`kubectl idalloc check`"},
		},
		"it waits, as the controller says": {change: func(n *snapshot) { n.agent(store.Deployment); n.now = time.Unix(4, 0) }},
		"the proposal is for another owner": {
			change: func(n *snapshot) { n.agent(store.StatefulSet); n.now = time.Unix(4, 0) },
			want:   []brief{{Misled, -1, "z"}}, says: []string{"names StatefulSet/worker"},
		},
	})
}

func TestTheTableSaysForWhomTheControllerPlansOrLocks(t *testing.T) {
	n := settledPods(2)
	n.agent("")
	n.edit("a", func(p *pod) { p.byAgent = true })
	n.edit("b", func(p *pod) { p.byController = true })
	v := n.view()
	for id, want := range []string{"agent", "controller"} {
		if cells := v.Slots[id].Cells(n.now); cells[len(cells)-2] != want || v.Slots[id].Assign != want {
			t.Errorf("id %d: %q", id, cells)
		}
	}
	if says := strings.Join(v.Remarks(), " "); !strings.Contains(says, "z (agent)") {
		t.Error(says)
	}
}

func TestWhatAnAgentWaitsFor(t *testing.T) {
	n := settledPods(2)
	n.agent("")
	if text := n.explain("z").Text(); !strings.Contains(text, "idalloc-controller has proposed nothing") || strings.Contains(text, "has written nothing on the pod") {
		t.Error(text)
	}
	n.edit("z", func(p *pod) { p.told = &receipt.Proposal{Why: "paused"} })
	if text := n.explain("z").Text(); !strings.Contains(text, "proposes no id to the pod (paused)") {
		t.Error(text)
	}
}

func TestWhatAPodShowsOfItsProposal(t *testing.T) {
	told := receipt.Proposal{UID: "u", Owner: identity.Owner{Kind: store.Deployment, Name: "w"}, Share: receipt.Nothing(), Why: "slots"}.Encode()
	of := func(uid, mark string) assigned {
		return assignedOf(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
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

func TestAnAgentNeedsNoRightOnItsOwner(t *testing.T) {
	owner := settledPods(1).owner.Ref
	var p pod
	p.byAgent = true
	for _, needs := range permissions(owner, p) {
		if needs.resource != "pods" {
			t.Errorf("it needs %+v", needs)
		}
	}
	if p.byAgent = false; len(permissions(owner, p)) != 9 {
		t.Errorf("a peer needs %+v", permissions(owner, p))
	}
}
