package allocator

import (
	"context"
	"fmt"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// blocked is the Lease of another pod that this one waits for, and until when at least.
type blocked struct {
	lease store.Lease
	until time.Time
}

// hearFence takes in that the time of the own Lease is over.
func (a *Allocator) hearFence() {
	if !a.lease.Over() {
		return
	}
	if !a.tenure.Working.Empty() {
		a.happened.Tell(event.Fenced{ID: a.tenure.Working.ID, Token: a.work.token, FenceAfter: a.o.FenceAfter, Reason: "no answer came in time"})
		a.work.fenced = true
	}
	a.work.token, a.work.shares, a.work.confirmed = 0, nil, false
	a.tenure = a.tenure.Fenced()
	a.work.tell()
	a.lease.Forget()
}

// secure has the own Lease say what the share has, or lets it go.
func (a *Allocator) secure(ctx context.Context, share receipt.Share) error {
	if share.Empty() {
		err := a.lease.LetGo(ctx)
		if err == nil {
			a.tenure = a.tenure.Secured(share)
		}
		return err
	}
	other, left, err := a.lease.Secure(ctx, share)
	switch {
	case err != nil:
		return err
	case left > 0:
		a.blocked = blocked{other, a.clock.Now().Add(left)}
		a.tenure = a.tenure.NotSecured()
		a.known.Again = a.clock.Now().Add(min(left, a.pace.Longer(againTime))) // its pod may let it go before
		a.happened.Tell(event.NotTaken{Reason: fmt.Sprintf("pod %s has the Lease %s", other.Pod, store.LeaseName(a.ref.String(), other.ID))})
		return nil
	}
	a.blocked, a.tenure = blocked{}, a.tenure.Secured(share)
	return nil
}

// survey lists the others' Leases (T3 in strict mode). The own one has to be this pod's still.
func (a *Allocator) survey(ctx context.Context) error {
	others, by, err := a.lease.Survey(ctx, a.tenure.Lock.Share)
	if err != nil || a.lease.Over() {
		return err
	}
	a.tenure = a.tenure.SawLeases(others)
	a.compared(by)
	return nil
}
