package allocator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
	"github.com/idalloc/idalloc/pkg/identity"
)

// until runs the loop until done returns true, an error occurs that a retry cannot cure, or ctx ends.
func (a *Allocator) until(ctx context.Context, done func() bool) (err error) {
	defer func() { a.endClaim(claimResult(err)) }()
	for {
		if err := a.under(ctx, done); !errors.Is(err, errOtherOwner) {
			return err
		}
		if err := a.persist(ctx, "find the owner", a.resolve); err != nil {
			return err
		}
	}
}

// under runs until for one owner. It returns errOtherOwner if another object owns the pod.
func (a *Allocator) under(ctx context.Context, done func() bool) error {
	follow, cancel := context.WithCancel(ctx)
	a.contact.Begin(follow, a.ref, a.log)
	a.lease.Begin(follow, a.ref, a.o.PodUID)
	defer func() {
		cancel()
		a.source.Close()
		a.contact.End()
		a.lease.Wait()
		a.state = a.work.Hear(a.state) // their goroutines have ended with the streams
	}()
	for {
		turn := a.clock.Now() // an alarm that falls due after this moment, and was not heard in this turn, wakes the next one
		a.hear()
		a.noteClaim()
		switch {
		case done():
			a.wait.set("")
			return nil
		case ctx.Err() != nil:
			return a.stopped(ctx)
		case a.source.Facts().Other && (a.settled() || a.ref.Name == "") && !a.ends: // under no owner there is nothing to settle
			return errOtherOwner
		}
		view, known := a.see()
		next, at := duty.Next(a.state, view, known, a.clock.Now())
		if next.Do != duty.Stop { // duty.Stop itself publishes what must stop
			a.tell()
		}
		err := a.do(ctx, next, turn, at)
		if errors.Is(err, ErrPodGone) {
			a.lease.Fence()
			a.state.Working = receipt.Nothing()
			a.publish(identity.StateLost)
			return err
		}
		if err := a.afterError(ctx, next, err); err != nil {
			return err
		}
	}
}

// resolve reads the pod, and finds its owner.
func (a *Allocator) resolve(ctx context.Context) error {
	pod, graceless, err := a.o.Store.GetOwnPod(ctx, a.o.Namespace, a.o.Pod)
	switch {
	case errors.Is(err, request.ErrGone):
		return fmt.Errorf("%w: %w: set POD_NAME and POD_NAMESPACE from the downward API (metadata.name, metadata.namespace)", ErrPodGone, err)
	case err != nil:
		return err
	case a.o.PodUID != "" && pod.UID != a.o.PodUID:
		return fmt.Errorf("%w: %s has UID %s, this process's pod had %s: its container must end, its node may not know yet that the pod was deleted",
			ErrPodGone, a.o.Pod, pod.UID, a.o.PodUID)
	case pod.Labels[receipt.AssignLabel] == receipt.ByController:
		return fmt.Errorf("%w: remove label %s from the pod template, or idalloc from pod %s", ErrAssigned, receipt.AssignLabel, a.o.Pod)
	}
	if a.pod == nil && a.o.Left != nil {
		a.work.Find(a.o.Left(string(pod.UID)))
	}
	a.source = a.sourceOf(pod)
	ref, err := a.source.Resolve(ctx, pod, a.work.Left())
	if err != nil {
		return err
	}
	a.pod, a.ref, a.o.PodUID, a.wrote = pod, ref, pod.UID, ""
	a.failed = nil
	a.log = a.o.Log.WithValues("namespace", a.o.Namespace, "pod", a.o.Pod)
	if ref.Name != "" { // empty until the controller names the owner
		a.log = a.o.Log.WithValues("owner", ref.String(), "namespace", a.o.Namespace, "pod", a.o.Pod)
	}
	if graceless && !a.state.Strict {
		// Log: `terminationGracePeriodSeconds: 0`: each deletion of this pod is a force delete. Strict mode is safe.
		// Do: remove it from the pod template.
		a.log.Info("the pod has no grace period: each deletion is a force delete, and two pods may act under one id")
	}
	a.state = a.state.Read(a.lockOn(pod))
	a.work.Resume(a.state, a.receipt())
	a.heard()
	return nil
}

// do carries a duty out. The caller passes errors to afterError.
func (a *Allocator) do(ctx context.Context, next duty.Duty, turn, at time.Time) error {
	a.contact.Busy()
	switch next.Do {
	case duty.ReadOwner:
		if err := a.source.ReadOwner(ctx); err != nil || !a.source.Facts().Known {
			return err
		}
		return a.giveBack(ctx)
	case duty.ReadPod:
		return a.readPod(ctx)
	case duty.Secure:
		return a.secure(ctx, next.Share)
	case duty.Write:
		err := a.write(ctx, next.Lock)
		switch {
		case errors.Is(err, errMayNotWrite) && a.source.Facts().Other && !a.state.Lease.Empty(): // as before any other receipt without a slot
			return a.secure(ctx, receipt.Nothing())
		case errors.Is(err, errMayNotWrite):
			return a.rest(ctx, duty.Duty{Do: duty.Rest, Why: duty.NoSlot}, turn, at)
		}
		return err
	case duty.List:
		if by := a.confirmedBy(); a.clock.Now().Before(by) {
			a.wait.why = a.source.Facts().Confirmer + " to confirm the lock"
			return a.rest(ctx, duty.Duty{Do: duty.Rest, Why: duty.Later}, turn, by)
		}
		return a.list(ctx)
	case duty.Survey:
		return a.survey(ctx)
	case duty.Begin:
		a.begin(next.Share)
	case duty.Stop:
		a.stop(next.Share) //nolint:contextcheck // what it starts ends with the streams
	case duty.CallOff:
		a.state = a.work.CallOff(a.state, next.Part)
	case duty.Judge:
		return a.source.Judge(ctx)
	case duty.Plan:
		planned, err := a.source.Plan(ctx)
		if a.state.Late = a.state.Late || planned.Late; planned.Made {
			a.wait.retry.Reset()
		}
		return err
	case duty.Rest:
		return a.rest(ctx, next, turn, at)
	}
	return nil
}

// rest waits for news, until the given time or the first alarm since the turn began.
func (a *Allocator) rest(ctx context.Context, why duty.Duty, turn, at time.Time) error {
	a.source.Listen(why)
	a.explain(why)
	now := a.clock.Now()
	if why.Why != duty.Later && !now.Before(a.wait.until) { // nothing is left to repeat
		a.wait.retry.Reset()
		a.contact.Succeeded()
		a.contact.NoteStale()
	}
	var timer <-chan time.Time
	if at = pace.Soonest(turn, at, a.alarm(turn)); !at.IsZero() {
		t := a.clock.NewTimer(max(0, at.Sub(now)))
		defer t.Stop()
		timer = t.C()
	}
	a.contact.AtRest()
	defer a.contact.Busy()
	select {
	case <-ctx.Done():
	case <-timer:
	case <-a.contact.Wake():
	case paused := <-a.o.Pause:
		a.work.Pause(a.state, paused)
	}
	return a.contact.Denied()
}

// stopped is the error of a loop whose context ended.
func (a *Allocator) stopped(ctx context.Context) error {
	if a.work.Shown().Assigned() {
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %w: waited for %s", ErrNoSlot, context.Cause(ctx), a.wait.now())
}

// afterError delays the next request after a failed one. It returns an error that a retry cannot cure.
func (a *Allocator) afterError(ctx context.Context, did duty.Duty, err error) error {
	if err == nil {
		if did.Do != duty.Rest && did.Do != duty.ReadPod {
			a.contact.Succeeded()
		}
		return nil
	}
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the loop says so
	}
	if err := a.contact.Failed(err); err != nil {
		return err
	}
	what := "the next try: " + err.Error()
	if errors.Is(err, request.ErrConflict) {
		what = "its next try: the object changed since it was read"
	}
	a.wait.after(a.clock.Now(), a.wait.retry.Next(), what)
	return nil
}

// persist repeats do until it succeeds, fails for good, or ctx ends.
func (a *Allocator) persist(ctx context.Context, what string, do func(context.Context) error) error {
	for {
		err := do(ctx)
		if err == nil {
			a.contact.Answered()
			a.wait.retry.Reset()
			return nil
		}
		if ctx.Err() == nil {
			if err := a.contact.Failed(err); err != nil {
				return err
			}
			timer := a.clock.NewTimer(a.wait.retry.Next())
			select {
			case <-ctx.Done():
				timer.Stop()
			case <-timer.C():
				continue
			}
		}
		return fmt.Errorf("could not %s: %w: the last try: %w", what, context.Cause(ctx), err)
	}
}
