// Package source defines what the loop asks about the proposal to its pod, independent of who proposes: the pods themselves (package planner) or a
// controller (package central).
package source

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/contact"
	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/lease"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
)

// Source reads what is proposed to a pod. One goroutine may use it at a time.
type Source interface {
	// Resolve forgets the former owner and returns the pod's present owner, or a Ref without a name if it is not known yet. left is what an earlier process
	// of the pod published.
	Resolve(ctx context.Context, pod *metav1.PartialObjectMetadata, left identity.Identity) (kinds.Ref, error)
	// Listen starts the watches that the process lacks, before it rests.
	Listen(why duty.Duty)
	// Hear reads the news from the watches of other objects than the pod.
	Hear()
	// Heard reads a newer version of the process's own pod. It returns the last T3 that another program did for the pod, or nil.
	Heard(pod *metav1.PartialObjectMetadata) *receipt.Confirmed
	// Consider decides whether it is this process's turn to plan. The loop calls it after all news was heard.
	Consider()
	// See returns what is proposed to the pod, and fills in the fields of known that depend on this source.
	See(known *duty.Known) duty.View
	// Facts returns what is known at this moment.
	Facts() Facts
	// Alarm returns when time alone changes what the source knows.
	Alarm(now time.Time) time.Time
	// Reason explains why the pod has no slot. lease describes a Lease of another pod that is in the way, or is empty.
	Reason(lease string) Reason

	// ReadOwner, Judge and Plan carry out the duties of these names.
	ReadOwner(ctx context.Context) error
	Judge(ctx context.Context) error
	Plan(ctx context.Context) (Outcome, error)
	// Shared reports whether other ids are also members.
	Shared() bool
	// MadeRoom reports whether a pod of another revision gave its slot up for this pod and wants it back.
	MadeRoom(ctx context.Context) (bool, error)

	// Took is called when the pod has its slot, Gave when its receipt no longer locks a slot, Ends when the process ends.
	Took()
	Gave()
	Ends()
	// Close ends the watches, except for those of package contact.
	Close()
}

// Facts are what a source knows at one moment.
type Facts struct {
	// Known: there is an owner to act for. Gone: it does not exist. Other: another object owns the pod.
	Known, Gone, Other bool
	// Owned is the owner's number of slots, and Count the number that applies to this pod. Counted: Count may be published.
	Owned, Count int
	Counted      bool
	// Named: the map names this pod for the slot that it locks, or for any slot if it locks none.
	Named bool
	// Busy: a plan is due, or a write of the owner got no answer.
	Busy bool
	// Asker is the pod that asked for the slot last, and Requester a pod that should have it. Both are empty if there is none.
	Asker, Requester string
	// MayWrite: this process may write a receipt for this owner.
	MayWrite bool
	// Confirmer is the program that does T3 for this process, empty if none does.
	Confirmer string
	// TellsEvents: the pod's account may write Kubernetes Events.
	TellsEvents bool
	// About is the owner as referenced by Events.
	About metav1.OwnerReference
}

// Reason is why a pod has no slot.
type Reason struct {
	Text string
	// Live and Waiting are the numbers of live and waiting pods. Live is 0 if they are unknown.
	Live, Waiting int
}

// Outcome is the result of a plan.
type Outcome struct {
	// Made: the requests succeeded, and the plan is made.
	Made bool
	// Late: a write that may name this pod got no answer, and may still arrive.
	Late bool
}

// State is what a process knows about its own pod.
type State struct {
	// Pod is as the process read or wrote it last. Owner is its owner.
	Pod   *metav1.PartialObjectMetadata
	Owner kinds.Ref
	Locks duty.LockState
	// Ends: the process ends. Pauses: it gets no partitions now.
	Ends, Pauses bool
	// Since is when the work under the id began.
	Since time.Time
	// Count is the count that was published last.
	Count int
}

// Receipt returns the receipt on the pod.
func (s State) Receipt() receipt.Receipt {
	r, _ := receipt.Of(s.Pod, s.Owner.String())
	return r
}

// Process is the process that a source serves.
type Process interface {
	State() State
	// ReadPod reads the process's pod. It changes nothing that State returns.
	ReadPod(ctx context.Context) (*metav1.PartialObjectMetadata, error)
	// WriteWaiting writes the receipt of a waiting pod.
	WriteWaiting(ctx context.Context) error
	// Proposed passes on the slot that a newer version of the owner proposes to the pod, or receipt.NoID. The process must not take a slot before from.
	// Proposed returns the earliest time at which it takes one.
	Proposed(id int, from time.Time) time.Time
}

// Options configure a Source.
type Options struct {
	Process Process
	Store   *store.Store
	Clock   clock.Clock
	Log     *logr.Logger
	Pace    *pace.Pace
	Contact *contact.Contact
	Lease   *lease.Guard
	Tell    func(event.Event)
	// Pod, Namespace, Divides and HandsOver: see allocator.Options.
	Pod, Namespace     string
	Divides, HandsOver bool
	Strategies         proposal.Strategies
	// Began is when the process sent its first request.
	Began time.Time
}
