package main

import (
	"context"
	"sync"

	"github.com/idalloc/idalloc/internal/hook"
	"github.com/idalloc/idalloc/internal/publish"
	"github.com/idalloc/idalloc/pkg/identity"
)

// announcer tells the workload: the files, HTTP, and the gate at which its word is waited for.
type announcer struct {
	shelf *shelf
	hub   *publish.Hub
	gate  hook.Gate
	// fenced says by the clock that the id is given up for lack of contact.
	fenced func() bool
	// fail ends the watcher.
	fail context.CancelCauseFunc

	mu sync.Mutex
	// told is the id that the workload was told of last and may be working under, until it is known to
	// have stopped; it is not assigned when there is none.
	told identity.Identity
}

// recall takes in what an earlier process of this pod told the workload. left is false when it told nothing.
func (a *announcer) recall() (left bool, err error) {
	there, found, err := a.shelf.Current()
	if err != nil || !found || there.Pod != a.shelf.none.Pod || there.Namespace != a.shelf.none.Namespace {
		return false, err
	}
	a.told = there
	if !there.Assigned() {
		a.told, err = a.shelf.Noted()
	}
	return a.told.Assigned(), err
}

// publish is for allocator.Options.Publish.
func (a *announcer) publish(id identity.Identity) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if id.Assigned() && a.fenced() {
		id = id.Without(identity.StateFenced) // told after it was decided, for what is over meanwhile
	}
	if err := a.announce(id); err != nil {
		a.fail(err) // files that say an old identity are worse than a restart
	}
}

func (a *announcer) announce(id identity.Identity) error {
	if err := a.remember(id); err != nil {
		return err
	}
	// Open before the workload can know, so that its word does not come too early; closed before it
	// is told to work again, so that no word counts which it does not keep.
	if id.State == identity.StateDraining {
		a.gate.Open(a.told.Epoch)
	} else {
		a.gate.Close()
	}
	err := a.shelf.Publish(id)
	if err == nil || !id.Assigned() {
		a.hub.Set(id)
	}
	return err
}

// remember keeps what the workload may be working under, also for a process that comes after this one.
func (a *announcer) remember(id identity.Identity) error {
	switch {
	case id.Assigned():
		a.told = id
		return nil // the files say it
	case id.State == identity.StateReleased: // only when the workload has ended
		a.told = identity.Identity{}
	}
	return a.shelf.Note(a.told)
}

// stopped takes in that no work goes on under id.
func (a *announcer) stopped(id identity.Identity) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.told != id || a.hub.Get().Assigned() {
		return nil // told of one again
	}
	a.told = identity.Identity{}
	return a.shelf.Note(a.told)
}

// givenUp returns the id that the workload was told of, if it was.
func (a *announcer) givenUp() (identity.Identity, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.told, a.told.Assigned()
}

// withdraw shows at once that the id is given up for lack of contact, and returns that id; false if the
// workload was told of none.
func (a *announcer) withdraw() (identity.Identity, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.announce(a.hub.Get().Without(identity.StateFenced)); err != nil {
		a.fail(err)
	}
	return a.told, a.told.Assigned()
}
