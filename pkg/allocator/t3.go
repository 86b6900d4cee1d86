package allocator

import (
	"context"
	"fmt"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// doubt is how long a process that resumes lists again before it assumes that a conflicting receipt stays.
const doubt = 10 * time.Second

// list lists the other pods' receipts (T3). The list must be at least as new as this pod's own receipt, and must contain that receipt unchanged.
func (a *Allocator) list(ctx context.Context) error {
	if !a.confirmedBy().IsZero() {
		if lists, err := a.overdue(ctx); !lists {
			return err
		}
	}
	mine := a.state.Lock.Share
	which := store.Sought{Since: a.version}
	if mine.SlotAlone() {
		which.IDs = []int{mine.ID} // but partitions may be locked under any slot
	}
	receipts, _, err := a.o.Store.Receipts(ctx, a.ref, which)
	if err != nil {
		return err
	}
	var others duty.Others
	own, by := false, ""
	for _, r := range receipts {
		switch {
		case r.UID == a.o.PodUID:
			own = r.Text == a.wrote
		case a.state.Strict && r.Strict && r.Overdue(a.clock.Now()): // its Lease states how long it holds
		default:
			if blocks := duty.LockOf(r.Receipt).Blocks(a.state.Lock); blocks.Any() {
				others, by = others.And(blocks), r.Pod
			}
		}
	}
	if !own {
		a.state = a.state.Lost()
		return fmt.Errorf("%w: the receipt on pod %s, or its labels, is not in the list of receipts as it was written", request.ErrNotKept, a.o.Pod)
	}
	a.state = a.state.Saw(others)
	a.compared(by)
	return nil
}

// compared is called after T3. by is a pod that also locks something of the share, or empty. A pod that withdraws from its slot tries again at a random
// time, because the other pod may do the same. A pod that resumes lists again for a while.
func (a *Allocator) compared(by string) {
	switch t := a.state; {
	case by == "":
	case !t.Doubts && !t.Others.Slot:
		a.contention.again = a.clock.Now().Add(a.pace.Longer(againTime))
	default:
		a.happened.Tell(event.NotTaken{Reason: "pod " + by + " also locks it"})
		if t.Doubts && a.clock.Since(a.work.Resumed()) <= doubt {
			a.wait.after(a.clock.Now(), a.wait.retry.Next(), "pod "+by+", which locks the same, to withdraw")
			return
		}
		a.state = t.Sure()
		a.contention.again = a.clock.Now().Add(a.contention.backoff.Next())
	}
	t := a.state
	works := t.Working.Within(t.Lock.Share)
	works.Partitions = works.Partitions.Minus(t.Others.Partitions)
	if t.Continues() && !works.Empty() && !t.Stopping.All {
		a.begun(works)
	}
}

// survey lists the other pods' Leases (T3 in strict mode). This pod must still hold its own Lease.
func (a *Allocator) survey(ctx context.Context) error {
	others, by, err := a.lease.Survey(ctx, a.state.Lock.Share)
	if err != nil || a.lease.Over() {
		return err
	}
	a.state = a.state.SawLeases(others)
	a.compared(by)
	return nil
}

// heard passes this pod to the source, and records a T3 that another program did for this process's receipt.
func (a *Allocator) heard() {
	if c := a.source.Heard(a.pod); c != nil && !a.confirmedBy().IsZero() && c.Write == a.written() {
		a.state = a.state.Saw(duty.Others{Slot: c.Slot, Partitions: c.Partitions})
		a.compared(c.By)
	}
}

// written returns the unique write number of this process's receipt, or "" if none of its receipts stands.
func (a *Allocator) written() string {
	r, err := receipt.Parse(a.wrote)
	if err != nil {
		return ""
	}
	return r.Write
}

// confirmedBy returns until when the process waits for another program to confirm its lock (T3), or the zero time if it does not wait.
func (a *Allocator) confirmedBy() time.Time {
	if t := a.state; !t.Known || !t.Renewed || t.Listed || a.source.Facts().Confirmer == "" {
		return time.Time{}
	}
	return a.wroteAt.Add(a.patience)
}

// overdue reports whether the process must list by itself because no confirmation came in time. It reads its pod first. If that is slow, the server is
// busy, and the other program is probably delayed as well: then the process waits longer, because one list per pod would make that worse.
func (a *Allocator) overdue(ctx context.Context) (lists bool, err error) {
	began := a.clock.Now()
	if err := a.readPod(ctx); err != nil {
		return false, err
	}
	a.patience = a.pace.Confirm(a.clock.Since(began))
	by := a.confirmedBy()
	return !by.IsZero() && !a.clock.Now().Before(by), nil
}
