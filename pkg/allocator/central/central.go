// Package central is the source of an agent: idalloc-controller reads the owner, plans, and writes its proposals and confirmations on the pod.
package central

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/lease"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/source"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
)

// controller is the program that proposes and confirms.
const controller = "idalloc-controller"

// Central holds what one agent knows from the controller.
type Central struct {
	o source.Options
	// told is the newest proposal.
	told  receipt.Proposal
	state state
	// left is what an earlier process of the pod published, until this process's own claim replaces it.
	left identity.Identity
	// mayWrite: the admission policy permits a receipt for the owner.
	mayWrite bool
	// asker is the pod that asks for the slot. It is empty if none has asked since the receipt last locked a slot.
	asker string
	// leases are the Leases to delete at turn.
	leases lease.Leftovers
	turn   time.Time
}

// state is what the controller has proposed so far.
type state int

const (
	// unread: nothing yet.
	unread state = iota
	// seen: a proposal of the pod's owner.
	seen
	// other: a proposal of another owner.
	other
)

var _ source.Source = (*Central)(nil)

// New returns a source without news.
func New(o source.Options) *Central { return &Central{o: o} }

// Resolve returns the owner that the controller named.
func (c *Central) Resolve(_ context.Context, pod *metav1.PartialObjectMetadata, left identity.Identity) (kinds.Ref, error) {
	*c = Central{o: c.o, left: left, told: receipt.Proposal{Share: receipt.Nothing()}}
	told, _ := c.says(pod)
	o := told.Owner
	return kinds.Ref{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, Namespace: c.o.Namespace}, nil
}

// says returns what the controller wrote on the pod. If another program removed that, a new process uses what its predecessor published: the owner of the
// lock on the pod, and its count. The rest is in the receipt.
func (c *Central) says(pod *metav1.PartialObjectMetadata) (told receipt.Proposal, ok bool) {
	told, ok = receipt.ProposalOf(pod)
	if r, _ := receipt.Of(pod, c.left.Owner.String()); !ok && c.state == unread && r.State == receipt.Locks {
		return receipt.Proposal{Owner: c.left.Owner, Count: c.left.Count, Share: receipt.Nothing()}, true
	}
	return told, ok
}

// Heard reads what the controller says on the pod now. If that is missing, the last proposal holds.
func (c *Central) Heard(pod *metav1.PartialObjectMetadata) *receipt.Confirmed {
	s := c.o.Process.State()
	c.mayWrite = mayWrite(pod, s.Owner)
	told, ok := c.says(pod)
	if !ok {
		return nil
	}
	if told.Count != c.told.Count && s.Locks.Strict {
		c.leases.Changed(c.o.Clock.Now())
	}
	c.told = told
	if c.state = seen; told.Owner.String() != s.Owner.String() { // the version of its kind may change
		c.state = other
		return nil
	}
	if by := told.Requester; by != c.asker {
		if c.asker = by; by != "" {
			c.o.Tell(event.Asked{ID: s.Locks.Lock.Share.ID, Requester: by})
		}
	}
	return told.Confirmed
}

// mayWrite reports whether the admission policy permits an agent to write a receipt for this owner: the controller names it, or the receipt on the pod
// does.
func mayWrite(pod *metav1.PartialObjectMetadata, owner kinds.Ref) bool {
	told, _ := receipt.ProposalOf(pod)
	r, _ := receipt.Anywhere(pod)
	return owner.Name != "" && (told.Owner.String() == owner.String() || r.Owner == owner.String())
}

// keeps reports whether the process keeps its work although the controller names another owner: the new owner proposes the same or nothing so far, and no
// pod asks for the slot. So no work stops if a workload is deleted without its pods and made again.
func (c *Central) keeps(l duty.LockState) bool {
	told, has := c.told, l.Lock.Share
	same := told.Share.ID == has.ID && (!c.o.Divides || told.Share.Of == 0 || told.Share.Partitions.Minus(told.Yield).Equal(has.Partitions))
	return c.state == other && !l.Working.Empty() && (told.Share.Empty() || same) && told.Requester == ""
}

// See returns what the controller proposes.
func (c *Central) See(known *duty.Known) duty.View {
	s, told := c.o.Process.State(), c.told
	known.Turn, known.Show = c.turn, c.state == seen && told.Share.Empty() // one plan should serve all pods that run
	v := duty.View{Gone: c.state != seen, Leaves: c.state == other && !c.keeps(s.Locks), Count: told.Count, Propose: receipt.Nothing()}
	if v.Gone {
		return v
	}
	v.Propose, v.Yield = told.Share, told.Yield
	v.Propose.Partitions = v.Propose.Partitions.Minus(v.Yield) // they may belong to another pod now: the controller does not repeat what the pod has unlocked
	if !c.o.Divides || s.Pauses {
		v.Propose.Of, v.Propose.Partitions = 0, placement.Set{}
	}
	if !c.o.Divides {
		v.Yield = placement.Set{}
	}
	v.Asked = c.o.HandsOver && c.asker != "" && s.Locks.Lock.State == receipt.Locks
	return v
}

// Facts returns what the controller said last. An agent writes no Events, because its account lacks the permission.
func (c *Central) Facts() source.Facts {
	known := c.state == seen
	return source.Facts{
		Known: known, Other: c.state == other, Owned: c.told.Count, Count: c.told.Count,
		Counted: known || c.keeps(c.o.Process.State().Locks), Busy: !c.turn.IsZero(), Asker: c.asker, Requester: c.asker,
		MayWrite: c.mayWrite, Confirmer: controller, About: store.Owner{}.About(),
	}
}

// Reason explains what the pod waits for.
func (c *Central) Reason(lease string) source.Reason {
	told, ref := c.told, c.o.Process.State().Owner
	switch {
	case lease != "":
		return source.Reason{Text: lease}
	case c.state != seen || told.UID == "" || !c.mayWrite:
		return source.Reason{Text: fmt.Sprintf("idalloc-controller to write annotation %s on this pod: see whether it runs and knows the workload (kubectl idalloc check, and explain)", receipt.ProposalKey)}
	case told.Count == 0:
		return source.Reason{Text: fmt.Sprintf("the count to grow: %s is scaled to 0", ref)}
	}
	return source.Reason{Text: fmt.Sprintf("idalloc-controller to propose one of the %d slots of %s (%s): kubectl idalloc explain says more", told.Count, ref, told.Why)}
}

// Consider sets the process's turn when Leases should be deleted. The process plans nothing else.
func (c *Central) Consider() {
	s, now := c.o.Process.State(), c.o.Clock.Now()
	c.turn = time.Time{}
	if at := c.clearsAt(s); !at.IsZero() && !now.Before(at) && s.Locks.Lock.State == receipt.Locks {
		c.turn = now
	}
}

// clearsAt returns when this holder deletes Leases. It does not know which lower ids have holders, and counts all.
func (c *Central) clearsAt(s source.State) time.Time { return c.leases.At(s.Locks.Lock.Share.ID) }

// Plan deletes the Leases of slots that the owner no longer has.
func (c *Central) Plan(ctx context.Context) (source.Outcome, error) {
	c.turn = time.Time{}
	return source.Outcome{}, c.leases.Delete(ctx, c.o.Lease, c.told.Count, c.o.Clock.Now)
}

// Alarm returns when Leases should be deleted.
func (c *Central) Alarm(now time.Time) time.Time {
	return pace.Soonest(now, c.clearsAt(c.o.Process.State()))
}

// Listen watches the pod, which carries everything that the controller says.
func (c *Central) Listen(duty.Duty) { c.o.Contact.WatchOnlyPod() }

// Shared returns what the controller says.
func (c *Central) Shared() bool { return c.told.Shared }

// MadeRoom returns what the controller says.
func (c *Central) MadeRoom(context.Context) (bool, error) { return c.told.MadeRoom, nil }

// Took forgets what the earlier process published.
func (c *Central) Took() { c.left = identity.Identity{} }

// Gave forgets the requester, and what the earlier process published.
func (c *Central) Gave() { c.asker, c.left = "", identity.Identity{} }

// Hear does nothing: the agent watches nothing but its pod.
func (c *Central) Hear() {}

// ReadOwner does nothing: the controller reads the owner.
func (c *Central) ReadOwner(context.Context) error { return nil }

// Judge does nothing: the controller has judged each pod that asks.
func (c *Central) Judge(context.Context) error { return nil }

// Ends does nothing.
func (c *Central) Ends() {}

// Close does nothing.
func (c *Central) Close() {}
