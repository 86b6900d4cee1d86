package allocator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

const (
	// insistAfter is how long a free slot that nobody takes is left to pods that did not give one up, and insistLate how long to
	// those whose program has not failed.
	insistAfter = 10 * time.Second
	insistLate  = time.Minute
)

// waitTurn waits this pod's random time, or until somebody else's write names this pod, or leaves nothing to plan.
// It returns the owner of that write: to be looked at again before the pod acts, but not before it writes its receipt.
func (c *claimer) waitTurn(ctx context.Context, scale time.Duration) (heard *store.Owner, err error) {
	c.listenToOwner()
	return c.listenFor(ctx, c.pace.Window(c.contenders, scale), func(owner store.Owner) bool {
		if named(owner, c.Allocator) && owner.Clean() {
			return true
		}
		_, idle := c.needless(owner)
		return idle
	})
}

// listenFor waits for d, or until the owner's stream, if there is one, has something that is enough, which it returns.
func (a *Allocator) listenFor(ctx context.Context, d time.Duration, enough func(store.Owner) bool) (heard *store.Owner, err error) {
	if a.owner == nil {
		return nil, a.sleep(ctx, d)
	}
	timer := a.clock.NewTimer(d)
	defer timer.Stop()
	a.idle()
	defer a.busy()
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-timer.C():
			return nil, nil //nolint:nilnil // nothing was heard
		case <-a.owner.Changed():
			a.noteStale()
			if owner, known, err := a.owner.Latest(); err == nil && known && enough(owner) {
				return &owner, nil
			}
		}
	}
}

// waitForSlot waits until a plan may come out differently: the count, the assignment, a hand-over,
// or one of the pods changed; or, in case a watch was silent, about half a minute. d is what the last plan,
// made from c.planned, came to.
func (c *claimer) waitForSlot(ctx context.Context, d plan.Decision) error {
	c.idleSince(d)
	if d.Scarce || d.TooLarge != nil {
		if err := c.showLife(ctx); err != nil {
			return err
		}
	}
	c.tellTooLarge(ctx, d)
	c.listen()
	if c.holders == nil {
		c.holders = c.followHolders(ctx, c.planned)
	}
	again := c.clock.Now().Add(c.pace.LookAgain())
	for {
		news, err := c.waitForNews(ctx, c.wakeIn(d, again))
		if err != nil {
			return err
		}
		if !news {
			c.doubt = true
			return nil
		}
		if err := c.deaf(); err != nil {
			return err
		}
		if c.worthAPlan(&d) {
			return nil
		}
	}
}

// wakeIn returns for how long a waiter trusts its watches, again at the latest, when what it would plan now is d.
func (c *claimer) wakeIn(d plan.Decision, again time.Time) time.Duration {
	in := again.Sub(c.clock.Now())
	if over, ok := c.quarantined.next(assignment.QuarantineTime(d.FenceAfter)); ok && d.FenceAfter > 0 {
		in = min(in, over)
	}
	for _, left := range []time.Duration{c.standBack(), c.insistIn()} {
		if left > 0 {
			in = min(in, left)
		}
	}
	return in
}

// waitForNews waits until a stream has news, or for d.
func (c *claimer) waitForNews(ctx context.Context, d time.Duration) (news bool, err error) {
	timer := c.clock.NewTimer(d)
	defer timer.Stop()
	c.idle()
	defer c.busy()
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-timer.C():
		return false, nil
	case <-c.owner.Changed():
	case <-c.holders.owned.Changed():
	case <-c.holders.labelled.Changed():
	case <-c.self.Changed():
		return true, c.stillHere(ctx)
	}
	return true, nil
}

// waitForOwner waits for a deleted owner to come back under its name, or a while.
func (c *claimer) waitForOwner(ctx context.Context) error {
	if what := fmt.Sprintf("%s in namespace %s to exist", c.ref, c.ref.Namespace); what != c.Waiting() {
		c.setWaiting(what)
		c.log.Info("waiting for the owner, which does not exist", "reason", what)
	}
	c.listen()
	timer := c.clock.NewTimer(c.retry.Next())
	defer timer.Stop()
	c.idle()
	defer c.busy()
	select {
	case <-ctx.Done():
		return c.noSlot(ctx)
	case <-timer.C():
	case <-c.owner.Changed():
		c.noteStale()
	case <-c.self.Changed():
		return c.stillHere(ctx)
	}
	return nil
}

// idleSince notes what this pod waits for, and with how many.
func (c *claimer) idleSince(d plan.Decision) {
	c.contenders = max(1, d.Waiting)
	c.explain(c.planned, d)
}

// worthAPlan reports whether the streams have something of which a plan might make more than the last one, which
// came to d. If not, it replaces d and c.planned by what would be planned now.
func (c *claimer) worthAPlan(d *plan.Decision) bool {
	c.noteStale()
	freed := c.holders.freed()
	owner, known, err := c.owner.Latest()
	if err != nil || !known {
		return false
	}
	if owner.Count != c.current.Count {
		c.becomePending(owner.Count)
	}
	if c.rolledOn(owner, *d) {
		return true
	}
	now, then := owner.Record.State, c.planned.Record.State
	if !freed && owner.UID == c.planned.UID && owner.Count == c.planned.Count && owner.Clean() == c.planned.Clean() &&
		maps.Equal(now.Slots, then.Slots) && maps.Equal(now.Handover, then.Handover) &&
		(d.TooLarge == nil || owner.Room() == c.planned.Room()) {
		return false
	}
	guess, idle := c.idleFor(owner)
	if !idle {
		return true
	}
	*d = guess
	c.idleSince(guess)
	return false
}

// rolledOn reports whether the rolling update went on since the last plan in what matters to a waiter; the number of
// pods that are available only when the number of hand-overs under way kept it from asking.
func (c *claimer) rolledOn(owner store.Owner, d plan.Decision) bool {
	rollout := owner.Rollout
	if !d.HandOver.Full() {
		rollout.Progress = c.planned.Rollout.Progress
	}
	return rollout != c.planned.Rollout
}

// stillHere ends a claim whose pod was deleted.
func (c *claimer) stillHere(ctx context.Context) error {
	if pod, ok := c.self.Get(c.o.Pod); !c.self.Synced() || (ok && pod.UID == c.pod.UID) {
		return nil
	}
	return c.readPod(ctx)
}

// deaf returns the error of a watch that was never permitted: without it a waiter would sleep, and a
// holder would miss that its id is gone.
func (a *Allocator) deaf() error {
	if d := a.owner.Denied(); d.Err != nil && d.Lasted() >= forbiddenGrace {
		return store.Forbidden(d.Verb, a.ref.GVR(), a.ref.Namespace, a.ref.Name, d.Err)
	}
	if a.self == nil {
		return nil
	}
	if d := a.self.Denied(); d.Err != nil && d.Lasted() >= forbiddenGrace {
		return store.Forbidden(d.Verb, store.Pods, a.ref.Namespace, "", d.Err)
	}
	return nil
}

// noteStale tells when contact is lost and found.
func (a *Allocator) noteStale() {
	since, why := a.owner.Stale()
	if (why != nil) == a.stale {
		return
	}
	a.setStale(why != nil)
	if a.stale {
		a.log.Info("the API server is away; the last state stays in force", "since", since, "reason", why.Error())
	} else {
		a.log.Info("the API server is back")
	}
}

// unreachable notes an error that is being repeated.
func (a *Allocator) unreachable(err error) {
	var forbidden *store.ForbiddenError
	switch {
	case err.Error() == a.failing:
		a.log.V(1).Info("a request failed again", "reason", err.Error())
	case errors.As(err, &forbidden):
		a.log.Error(err, "a request is forbidden and will be repeated")
	default:
		a.log.Info("a request failed and will be repeated", "reason", err.Error())
	}
	a.failing = err.Error()
	if errors.Is(err, store.ErrNoAnswer) {
		a.setStale(true)
	}
}

func (a *Allocator) setStale(stale bool) {
	if stale != a.stale {
		a.stale = stale
		a.o.Stale(stale)
	}
}

// forbiddenGrace is how long a missing permission is doubted: an API server that has just started
// refuses everything until it has read its roles.
const forbiddenGrace = 5 * time.Second

// refusal is one episode of a missing permission.
type refusal struct {
	what        string
	since, last time.Time
	times       int
}

// temporary reports whether repeating may help.
func (a *Allocator) temporary(err error) bool {
	var forbidden *store.ForbiddenError
	if !errors.As(err, &forbidden) {
		return store.Temporary(err)
	}
	now, what := a.clock.Now(), forbidden.Verb+" "+forbidden.Resource
	if a.refused.what != what || now.Sub(a.refused.last) > pace.MaxDelay+forbiddenGrace {
		a.refused = refusal{what: what, since: now}
	}
	a.refused.last = now
	a.refused.times++
	return a.refused.times < 3 || now.Sub(a.refused.since) < forbiddenGrace
}

// latest is the newest moment of the owner that the stream has, with the current count if it has none.
func (a *Allocator) latest() store.Owner {
	owner, known, err := a.owner.Latest()
	if err != nil || !known {
		return store.Owner{Count: a.current.Count}
	}
	return owner
}

// sleep waits for d or until ctx ends.
func (a *Allocator) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := a.clock.NewTimer(d)
	defer timer.Stop()
	a.idle()
	defer a.busy()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C():
		return nil
	}
}

// persist repeats do until it succeeds, fails for good, or ctx ends.
func (a *Allocator) persist(ctx context.Context, what string, do func() error) error {
	b := a.pace.Backoff()
	for {
		err := do()
		if err == nil || !a.temporary(err) {
			return err
		}
		if ctx.Err() == nil {
			if errors.Is(err, store.ErrConflict) {
				a.log.V(1).Info("conflict: trying again", "what", what)
			} else {
				a.unreachable(err)
			}
			if a.sleep(ctx, b.Next()) == nil {
				continue
			}
		}
		return fmt.Errorf("idalloc: could not %s: %w: the last try: %w", what, context.Cause(ctx), err)
	}
}
