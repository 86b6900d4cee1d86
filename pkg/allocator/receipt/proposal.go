package receipt

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

const (
	// ByAgent is the value of AssignLabel for a pod whose own process locks what idalloc-controller proposes to it.
	ByAgent = "agent"
	// ProposalKey is the annotation of such a pod that carries its Proposal. Only the controller writes it.
	ProposalKey = "idalloc.dev/proposal"
)

// Proposal is the controller's message to the process of one pod: what map and row propose to it, and the result of T3 for its receipt. The process uses it
// like a read of the owner.
type Proposal struct {
	// UID is the UID of the pod. A proposal that was copied from another pod is ignored.
	UID string
	// Owner is the object that carries the map.
	Owner identity.Owner
	// Count is the number of slots for this pod. A condemned pod keeps its slot until Kubernetes removes it.
	Count int
	// Share is the slot that the map proposes, with the partitions that the row proposes to its id; Nothing if there is none.
	Share Share
	// Shared: other ids also divide partitions.
	Shared bool
	// Yield has the pod's partitions that should go to other ids.
	Yield placement.Set
	// Requester is a pod that should have the slot, empty if there is none.
	Requester string
	// MadeRoom: a pod of another revision had given a slot up, and wanted one, when this was written.
	MadeRoom bool
	// Why explains why there is no slot, empty if there is one.
	Why string
	// Confirmed is the outcome of the last T3, nil before the first one.
	Confirmed *Confirmed
}

// Confirmed is the result of T3 for one receipt.
type Confirmed struct {
	// Write is the Write of the receipt, and Share what the receipt locks.
	Write string
	Share Share
	// Slot: another pod also locks the slot. Partitions are those that other pods also lock. By is one of these pods.
	Slot       bool
	Partitions placement.Set
	By         string
}

type proposalWire struct {
	UID       string         `json:"uid"`
	Owner     identity.Owner `json:"owner"`
	Count     int            `json:"count"`
	ID        *int           `json:"id,omitempty"`
	Of        int            `json:"of,omitempty"`
	Set       string         `json:"partitions,omitempty"`
	Shared    bool           `json:"shared,omitempty"`
	Yield     string         `json:"yield,omitempty"`
	Requester string         `json:"requester,omitempty"`
	MadeRoom  bool           `json:"madeRoom,omitempty"`
	Why       string         `json:"why,omitempty"`
	Confirmed *confirmedWire `json:"confirmed,omitempty"`
}

type confirmedWire struct {
	Write string `json:"write"`
	ID    int    `json:"id"`
	Of    int    `json:"of,omitempty"`
	Set   string `json:"partitions,omitempty"`

	OtherSlot bool   `json:"otherSlot,omitempty"`
	OtherSet  string `json:"otherPartitions,omitempty"`
	By        string `json:"by,omitempty"`
}

// Encode returns the text of the annotation.
func (p Proposal) Encode() string {
	w := proposalWire{UID: p.UID, Owner: p.Owner, Count: p.Count, Shared: p.Shared, Yield: p.Yield.String(), Requester: p.Requester, MadeRoom: p.MadeRoom, Why: p.Why}
	if !p.Share.Empty() {
		w.ID, w.Of, w.Set = &p.Share.ID, p.Share.Of, p.Share.Partitions.String()
	}
	if c := p.Confirmed; c != nil {
		w.Confirmed = &confirmedWire{
			Write: c.Write, ID: c.Share.ID, Of: c.Share.Of, Set: c.Share.Partitions.String(), OtherSlot: c.Slot, OtherSet: c.Partitions.String(), By: c.By,
		}
	}
	b, err := json.Marshal(w)
	if err != nil {
		panic(fmt.Sprintf("idalloc: a proposal of strings and numbers does not encode: %v", err))
	}
	return string(b)
}

// ProposalOf returns the controller's proposal on the pod. ok is false if there is none, or if it belongs to another pod or is unreadable: the controller
// writes it again.
func ProposalOf(pod metav1.Object) (p Proposal, ok bool) {
	text, there := pod.GetAnnotations()[ProposalKey]
	if !there {
		return Proposal{Share: Nothing()}, false
	}
	p, err := ParseProposal(text)
	return p, err == nil && p.UID == string(pod.GetUID())
}

// ParseProposal reads the text of the annotation. It ignores unknown fields.
func ParseProposal(text string) (Proposal, error) {
	none := Proposal{Share: Nothing()}
	var w proposalWire
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		return none, fmt.Errorf("not a proposal: %s", quote(text))
	}
	p := Proposal{UID: w.UID, Owner: w.Owner, Count: w.Count, Share: Nothing(), Shared: w.Shared, Requester: w.Requester, MadeRoom: w.MadeRoom, Why: w.Why}
	if w.UID == "" || w.Owner.Kind == "" || w.Owner.Name == "" || w.Count < 0 || w.Count > MaxID+1 {
		return none, fmt.Errorf("a proposal without uid or owner, or with a count that makes no sense: %s", quote(text))
	}
	var err error
	if w.ID != nil {
		if p.Share, err = shareOf(*w.ID, w.Of, w.Set); err != nil {
			return none, err
		}
	}
	if p.Yield, err = placement.Parse(w.Yield, placement.MaxCount); err != nil {
		return none, fmt.Errorf("a proposal: %w", err)
	}
	if c := w.Confirmed; c != nil {
		if c.Write == "" {
			return none, fmt.Errorf("a proposal that confirms no write: %s", quote(text))
		}
		out := Confirmed{Write: c.Write, Slot: c.OtherSlot, By: c.By}
		if out.Share, err = shareOf(c.ID, c.Of, c.Set); err != nil {
			return none, err
		}
		if out.Partitions, err = placement.Parse(c.OtherSet, placement.MaxCount); err != nil {
			return none, fmt.Errorf("a proposal: %w", err)
		}
		p.Confirmed = &out
	}
	return p, nil
}

func shareOf(id, of int, text string) (Share, error) {
	set, err := placement.Parse(text, placement.MaxCount)
	if err != nil {
		return Nothing(), fmt.Errorf("a proposal: %w", err)
	}
	if id < 0 || id > MaxID || of < 0 || of > placement.MaxCount {
		return Nothing(), fmt.Errorf("a proposal of id %d with %d partitions", id, of)
	}
	return Share{ID: id, Of: of, Partitions: set}, nil
}
