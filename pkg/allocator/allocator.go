package allocator

import (
	"context"
	"errors"
	"math/rand/v2"
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
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/report"
	"github.com/idalloc/idalloc/pkg/allocator/source"
	"github.com/idalloc/idalloc/pkg/allocator/work"
	"github.com/idalloc/idalloc/pkg/identity"
)

// Allocator holds at most one slot for one pod. One goroutine may use it at a time, except for Fenced, Healthy and Waiting.
type Allocator struct {
	o        Options
	clock    clock.Clock
	log      logr.Logger
	happened event.Observers
	pace     *pace.Pace

	contact *contact.Contact
	// pod is this pod as last read or written. wrote is the receipt that this process wrote last, empty if unknown. version is the pod's resourceVersion
	// since that write.
	pod            *metav1.PartialObjectMetadata
	wrote, version string
	// failed are the receipts that this process has sent since then and that failed, but may have arrived or may still arrive.
	failed []string
	// conflict: the last of them failed because the old receipt was not the expected one.
	conflict bool
	ref      kinds.Ref
	// sources are all possible sources, source is the one of this pod.
	sources map[string]source.Source
	source  source.Source
	// began is when this process sent its first request.
	began time.Time
	// wroteAt is when the last receipt was written. From then on, the process waits up to patience for another program's T3.
	wroteAt  time.Time
	patience time.Duration
	// lag tracks the lag of the pod's stream.
	lag contact.Lag
	// damage counts how often another program changed the receipt.
	damage pace.Undone

	state      duty.LockState
	work       *work.Work
	lease      *lease.Guard
	contention contention
	wait       wait
	// ends: the process ends.
	ends bool
}

// New reads the pod and finds its owner. It blocks until the API server answers or ctx ends. Errors: strict mode cannot work, those of watch.Resolve, and
// ErrPodGone if the pod does not exist.
func New(ctx context.Context, o Options) (*Allocator, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	a := &Allocator{o: o, clock: o.Store.Clock, log: o.Log, pace: pace.New(rand.Float64), state: duty.Start(o.FenceAfter > 0, receipt.Nothing())}
	a.wait.retry, a.contention.backoff, a.began = a.pace.Backoff(), a.pace.Backoff(), a.clock.Now()
	tell := func(e event.Event) { a.happened.Tell(e) }
	a.contact = contact.New(contact.Options{Store: o.Store, Pod: o.Pod, Stale: o.Stale, Happened: tell}, o.Log)
	a.lease = lease.New(lease.Options{
		Store: o.Store, Pace: a.pace, Pod: o.Pod, After: o.FenceAfter, Lead: o.FenceLead,
		Fenced: o.Fenced, News: a.contact.Ring, Contact: func(e event.Contact) { tell(e) },
	})
	a.work = work.New(work.Options{
		Clock: a.clock, Log: &a.log, Pace: a.pace, Contact: a.contact, Tell: tell,
		Publish: o.Publish, Stop: o.Stop, Divides: o.Divides, LastStop: o.LastStop, Paused: o.Paused,
	})
	a.sources = sources(source.Options{
		Process: served{a}, Store: o.Store, Clock: a.clock, Log: &a.log, Pace: a.pace, Contact: a.contact, Lease: a.lease, Tell: tell,
		Pod: o.Pod, Namespace: o.Namespace, Divides: o.Divides, HandsOver: o.HandsOver, Strategies: a.o.strategy, Began: a.began,
	})
	if o.Observer != nil {
		a.happened = event.Observers{o.Observer}
	}
	a.wait.set("the API server's answer about this pod and its owner")
	if err := a.persist(ctx, "find the owner", a.resolve); err != nil {
		return nil, err
	}
	a.reached()
	me := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: o.Pod, UID: a.pod.UID}
	tellers := event.Observers{report.Log{Logger: &a.log}}
	if a.source.Facts().TellsEvents {
		tellers = append(tellers, report.NewEvents(o.Store, &a.log, o.Namespace, me, a.contact.Go))
	}
	a.happened = append(tellers, a.happened...)
	if err := a.inherit(ctx); err != nil {
		return nil, err
	}
	return a, nil
}

// Run claims a slot and keeps it until ctx ends. If it loses the slot or gives it away, it claims another one. It returns context.Cause(ctx), with
// ErrNoSlot if there was no slot at that moment. It returns at once on an error that a retry cannot cure. It does not release the slot: call Release
// afterwards, when the work has stopped.
func (a *Allocator) Run(ctx context.Context) error {
	return a.until(ctx, func() bool { return false })
}

// lastTime bounds how long Note waits for the answer.
const lastTime = 2 * time.Second

// Note writes into the receipt what the pod holds, for the pod's next process, unless the receipt has it already. Call it after Run returned, if the pod
// keeps its slot. It tries once, for at most two seconds. If it fails, the next process gets newer tokens.
func (a *Allocator) Note(ctx context.Context) {
	next := duty.Step(a.state, duty.Desired{Propose: receipt.Nothing(), Note: true})
	if next.Do != duty.Write || !next.Lock.Held.Slot {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTime)
	defer cancel()
	_ = a.write(ctx, next.Lock)
}

// Claim claims a slot and returns. The pod keeps the slot. Errors: as of Run.
func (a *Allocator) Claim(ctx context.Context) (identity.Identity, error) {
	err := a.until(ctx, func() bool { return a.work.Shown().Assigned() })
	if err == nil {
		a.Note(ctx)
	}
	return a.work.Shown(), err
}

// Release gives the slot back, if there is one, and publishes the state released. Call it after Run or Claim returned, and only when the work under the id
// has stopped. byItself: the work ended by itself, which is a failure if it was soon after the take. Release blocks until the receipt, and the owner if
// this pod writes it, are updated, or until ctx ends. After an error, the slot comes free when the pod is gone.
func (a *Allocator) Release(ctx context.Context, byItself bool) error {
	a.work.Ends(byItself)
	a.ends, a.wait.until = true, time.Time{}
	a.state = a.state.Stopped(duty.Part{All: true})
	a.publish(identity.StateReleased)
	a.source.Ends()
	holdsNothing := func() bool {
		return a.state.Known && !a.state.Late && a.state.Lock.State != receipt.Locks && a.state.Lease.Empty()
	}
	err := a.until(ctx, func() bool {
		f := a.source.Facts()
		return holdsNothing() && !f.Busy && (!f.Named || a.state.Lock.State == receipt.GaveUp)
	})
	if err != nil && !holdsNothing() && !a.source.Facts().Gone && !errors.Is(err, ErrPodGone) { // without its pod or its owner it holds nothing
		return err
	}
	if s := a.state.Lock.State; a.state.Known && (s == receipt.Waits || s == receipt.None) && a.pod.DeletionTimestamp == nil {
		// without a receipt it also counts as a waiter, unless its pod is being deleted
		_ = a.write(ctx, duty.Lock{State: receipt.GaveUp, Share: receipt.Nothing()}) // tried once: no plan gives it a slot from now on
	}
	return nil
}
