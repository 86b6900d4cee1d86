package allocator

import (
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/identity"
)

// The states of docs/protocol.md. Only take makes a process a holder. Only give and the functions that enter a state end that, and
// only the latter tell Options.Publish.

// becomePending: the pod has no slot. The owner has this count.
func (a *Allocator) becomePending(count int) {
	a.held = nil
	a.shares.drop()
	a.publish(identity.StatePending, count)
}

// becomeAssigned: the work may go on under the id, unless the clock says that it is fenced already.
func (a *Allocator) becomeAssigned() {
	if a.Fenced() {
		a.publish(identity.StateFenced, a.held.view.Count)
		return
	}
	a.publish(identity.StateAssigned, a.held.view.Count)
}

// becomeDraining: the work must stop. The slot is kept until it has.
func (a *Allocator) becomeDraining() { a.publish(identity.StateDraining, a.held.view.Count) }

// becomeLost: the slot is gone, whether or not the work has stopped.
func (a *Allocator) becomeLost() {
	if a.held != nil {
		a.strict.stop()
	}
	a.held = nil
	a.shares.drop()
	a.publish(identity.StateLost, a.current.Count)
}

// becomeFenced: there was no contact for too long. The receipt stays, so that the slot is kept for this pod.
func (a *Allocator) becomeFenced() {
	a.held = nil
	a.shares.drop()
	a.wrote = false // somebody may have removed the receipt meanwhile: the next take writes it again
	a.publish(identity.StateFenced, a.current.Count)
}

// becomeReleased: the work has stopped for good.
func (a *Allocator) becomeReleased() {
	a.held = nil
	a.shares.drop()
	a.publish(identity.StateReleased, a.current.Count)
}

// publish tells the new identity, if it is news. Only an assigned identity has an id and a token.
func (a *Allocator) publish(state identity.State, count int) {
	next := a.current.Without(state)
	next.Count = count
	if state == identity.StateAssigned {
		next.ID, next.Epoch = a.held.id, a.held.token
	}
	if !a.isNews(next) {
		return
	}
	a.happened.Tell(event.Published{From: a.current, To: next})
	if a.shares.told = false; state != identity.StateAssigned {
		a.shares.hush(next)
	}
	a.show(next)
}

// shown is the identity that Options.Publish was called with last.
type shown struct {
	current identity.Identity
	// published is false until the first call. Before its first read of the owner, a process leaves in force what the process
	// before it published.
	published bool
	announce  func(identity.Identity)
}

func (s *shown) isNews(next identity.Identity) bool { return next != s.current || !s.published }

func (s *shown) show(next identity.Identity) {
	s.current, s.published = next, true
	s.announce(next)
}
