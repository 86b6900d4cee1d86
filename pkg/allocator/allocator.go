package allocator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/lease"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/report"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/watch"
)

// Allocator holds at most one slot for one pod. One goroutine may use it at a time, except for Fenced, Healthy and Waiting.
type Allocator struct {
	o        Options
	clock    clock.Clock
	log      logr.Logger
	happened event.Observers
	pace     *pace.Pace
	retry    *pace.Backoff

	contact contact
	// pod is this pod as last read or written, and wrote the receipt that this process wrote last.
	pod   *metav1.PartialObjectMetadata
	wrote string
	ref   store.Ref

	tenure  duty.Tenure
	known   duty.Known
	view    view
	plans   plans
	work    work
	lease   *lease.Guard
	blocked blocked
	wait    wait
	held    told
}

// New reads the pod and finds its owner. It blocks until the API server answers or ctx ends. The errors are a strict mode that cannot work,
// those of watch.Resolve, and ErrPodGone for a pod that does not exist.
func New(ctx context.Context, o Options) (*Allocator, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	a := &Allocator{
		o: o, clock: o.Store.Clock, log: o.Log, pace: pace.New(rand.Float64), tenure: duty.Start(o.FenceAfter > 0),
	}
	a.lease = lease.New(lease.Options{
		Store: o.Store, Pace: a.pace, Pod: o.Pod, After: o.FenceAfter, Lead: o.FenceLead,
		Fenced: o.Fenced, Ended: a.contact.ring, Contact: func(e event.Contact) { a.happened.Tell(e) },
	})
	a.retry = a.pace.Backoff()
	a.plans = plans{began: a.clock.Now(), again: a.pace.Backoff()}
	a.contact = contact{tell: o.Stale, clock: a.clock, log: o.Log}
	if o.Observer != nil {
		a.happened = event.Observers{o.Observer}
	}
	a.contact.happened = &a.happened
	a.wait.set("the API server's answer about this pod and its owner")
	if err := a.persist(ctx, "find the owner", a.resolve); err != nil {
		return nil, err
	}
	a.reached()
	a.happened = event.Observers{
		report.Log{Logger: &a.log},
		report.NewEvents(o.Store, &a.log, o.Namespace, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: o.Pod, UID: a.pod.UID}, a.contact.spawn),
	}
	if o.Observer != nil {
		a.happened = append(a.happened, o.Observer)
	}
	a.work.begin(a)
	return a, nil
}

// resolve reads the pod, and finds its owner.
func (a *Allocator) resolve(ctx context.Context) error {
	pod, err := a.o.Store.GetPod(ctx, a.o.Namespace, a.o.Pod)
	switch {
	case errors.Is(err, store.ErrGone):
		return fmt.Errorf("%w: %w: set POD_NAME and POD_NAMESPACE from the downward API (metadata.name, metadata.namespace)", ErrPodGone, err)
	case err != nil:
		return err
	case a.o.PodUID != "" && pod.UID != a.o.PodUID:
		return fmt.Errorf("%w: %s has UID %s, this process's pod had %s: its container must end, its node may not know yet that the pod was deleted",
			ErrPodGone, a.o.Pod, pod.UID, a.o.PodUID)
	}
	ref, err := watch.Resolve(ctx, a.o.Store, pod)
	if err != nil {
		return err
	}
	a.pod, a.ref, a.o.PodUID, a.wrote = pod, ref, pod.UID, ""
	a.log = a.o.Log.WithValues("owner", ref.String(), "namespace", a.o.Namespace, "pod", a.o.Pod)
	a.contact.ref, a.contact.log = ref, a.log
	a.known.Unseen, a.view = true, view{}
	a.tenure = a.tenure.Read(a.lockOn(pod))
	return nil
}

// PodUID returns the UID of this pod, by which a successor of the same name is told apart.
func (a *Allocator) PodUID() string { return string(a.o.PodUID) }

// Owner returns the owner that New found.
func (a *Allocator) Owner() store.Ref { return a.ref }

// Run claims a slot and keeps it until ctx ends. After it lost a slot or gave it away, it claims another one. It returns context.Cause(ctx),
// with ErrNoSlot if there was no slot at that moment. An error that repeating does not cure ends it at once. It does not release the slot: call
// Release after it, when the work has stopped.
func (a *Allocator) Run(ctx context.Context) error {
	return a.until(ctx, func() bool { return false })
}

// Claim claims a slot and returns. The pod keeps the slot. Errors: as of Run.
func (a *Allocator) Claim(ctx context.Context) (identity.Identity, error) {
	err := a.until(ctx, func() bool { return a.work.shown.Assigned() })
	return a.work.shown, err
}

// Release gives the slot back, if there is one, and publishes the state released. Call it after Run or Claim returned, and only when the work
// under the id has stopped. byItself says that the work stopped although nobody told it to, which soon after the slot was taken is a failure. It
// blocks until the receipt says so, and the owner, if this pod writes it; or until ctx ends. In the latter case the slot comes free when the
// pod is gone.
func (a *Allocator) Release(ctx context.Context, byItself bool) error {
	a.work.failed(byItself)
	a.known.Ends = true
	a.tenure = a.tenure.Told(receipt.Nothing()).Stopped()
	a.work.ended(identity.StateReleased)
	holdsNothing := func() bool {
		return a.tenure.Known && a.tenure.Lock.State != receipt.Locks && a.tenure.Lease.Empty()
	}
	if !holdsNothing() {
		err := a.until(ctx, func() bool { return holdsNothing() && !a.known.Worth })
		if err != nil && a.view.state != gone && !errors.Is(err, ErrPodGone) { // without its pod or its owner it holds nothing
			return err
		}
	}
	if a.tenure.Known && a.tenure.Lock.State == receipt.Waits {
		_ = a.write(ctx, duty.Lock{State: receipt.GaveUp, Share: receipt.Nothing()}) // tried once: no plan gives it a slot from now on
	}
	return nil
}

// Fenced reports, by the clock at the call, whether the id that was published last is fenced for lack of contact (strict mode). It is for
// callers that may have been suspended since then. It does not block and may be called from any goroutine.
func (a *Allocator) Fenced() bool { return a.lease.Over() }

// Healthy returns an error if the loop is stuck. Waiting, for an API server that is away as well, is not.
func (a *Allocator) Healthy() error { return a.contact.healthy() }

// Waiting says what the allocator waits for, empty if for nothing.
func (a *Allocator) Waiting() string { return a.wait.now() }

// until runs the loop until done, an error that repeating does not cure, or the end of ctx.
func (a *Allocator) until(ctx context.Context, done func() bool) (err error) {
	defer func() { a.endClaim(claimResult(err)) }()
	for {
		if err := a.under(ctx, done); !errors.Is(err, errOtherOwner) {
			return err
		}
		a.plans = plans{began: a.plans.began, again: a.pace.Backoff()}
		if err := a.persist(ctx, "find the owner", a.resolve); err != nil {
			return err
		}
	}
}

// under is until under one owner. It returns errOtherOwner if another object owns the pod.
func (a *Allocator) under(ctx context.Context, done func() bool) error {
	follow, cancel := context.WithCancel(ctx)
	a.contact.begin(follow)
	a.lease.Begin(follow, a.ref, a.o.PodUID)
	defer func() {
		cancel()
		a.plans.close()
		a.contact.end()
		a.lease.Wait()
		a.work.forgetStop()
	}()
	defer a.complain(follow)()
	for {
		a.hear()
		a.noteClaim()
		switch {
		case done():
			a.wait.set("")
			return nil
		case ctx.Err() != nil:
			return a.stopped(ctx)
		case a.view.state == other && a.settled() && !a.known.Ends:
			return errOtherOwner
		}
		next, at := duty.Next(a.tenure, a.see(), a.known, a.clock.Now())
		a.work.tell()
		err := a.do(ctx, next, at)
		if errors.Is(err, ErrPodGone) {
			a.work.ended(identity.StateLost)
			return err
		}
		if err := a.afterError(ctx, next, err); err != nil {
			return err
		}
	}
}

// stopped is the error of a loop whose context ended.
func (a *Allocator) stopped(ctx context.Context) error {
	if a.work.shown.Assigned() {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w: waited for %s", ErrNoSlot, context.Cause(ctx), a.Waiting())
}

// afterError has the next request wait after one in vain. It returns an error that repeating does not cure.
func (a *Allocator) afterError(ctx context.Context, did duty.Duty, err error) error {
	switch {
	case err == nil:
		if did.Do != duty.Rest && did.Do != duty.Read {
			a.contact.failing = ""
		}
		return nil
	case ctx.Err() != nil:
		return nil //nolint:nilerr // the loop says so
	case !errors.Is(err, store.ErrNotKept) && !a.contact.temporary(err):
		return err
	case errors.Is(err, store.ErrConflict):
		a.happened.Tell(event.Conflict{})
	case errors.Is(err, store.ErrNotKept):
		a.contact.notKept(err)
	default:
		a.contact.unreachable(err)
	}
	a.later(a.retry.Next())
	return nil
}

// later has no request sent for this long.
func (a *Allocator) later(d time.Duration) { a.known.Retry = a.clock.Now().Add(d) }
