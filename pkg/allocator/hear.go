package allocator

import (
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/event"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// hear takes in what streams, timers and goroutines have brought.
func (a *Allocator) hear() {
	a.state = a.work.Hear(a.state)
	a.hearFence()
	a.contact.Renewals(a.lease.Refused())
	a.contact.NoteStale()
	if stream := a.contact.Owner(); stream != nil {
		owner, known, err := stream.Latest()
		if known {
			a.view.lag = lag{}
		}
		switch {
		case err != nil:
			// Log: the watch delivered an object that makes no sense, such as one with an empty selector.
			// Do: read the error.
			a.log.Error(err, "the owner cannot be read; the id is kept")
		case known && newer(owner.ResourceVersion, a.view.owner.ResourceVersion):
			a.adopt(owner)
		case !known && stream.Synced() && a.view.state == seen && a.view.lag.asks("", a.clock.Now()):
			a.view.state = unread // deleted, it seems
		}
	}
	if stream := a.contact.Pod(); stream != nil {
		a.hearSelf(stream.Get(a.o.Pod))
	}
	if a.view.ok() {
		a.work.FollowRest(a.state, a.othersDivide)
	}
	a.reconsider()
}

// lag is that of a stream that does not know what the newest read has found. The object is read again only when the stream says something else, or
// after a while.
type lag struct {
	says  string
	until time.Time
}

// asks reports whether the object is to be read because of what the stream says now.
func (l *lag) asks(says string, now time.Time) bool {
	if l.says == says && now.Before(l.until) {
		return false
	}
	*l = lag{says, now.Add(awayTime)}
	return true
}

// hearSelf looks for what others changed on the own pod. The stream lags behind this process's own writes.
func (a *Allocator) hearSelf(pod *metav1.PartialObjectMetadata, there bool) {
	uid := types.UID("")
	if there {
		uid = pod.UID
	}
	if uid != a.o.PodUID {
		if a.lag.asks(string(uid), a.clock.Now()) {
			a.state = a.state.Lost()
		}
		return
	}
	a.lag = lag{}
	switch {
	case !newer(pod.ResourceVersion, a.pod.ResourceVersion):
	case pod.Annotations[receipt.Key] != a.pod.Annotations[receipt.Key] || labelsOf(pod) != labelsOf(a.pod):
		if a.state = a.state.Lost(); a.wrote != "" && !slices.Contains(a.failed, pod.Annotations[receipt.Key]) {
			a.hurt() // a late write may have brought the own bytes back by now: a read would not show that they were gone
			a.meet(pod)
			a.hearTold(pod)
		}
	default:
		a.meet(pod)
		a.hearTold(pod)
	}
}

// hearFence takes in that the time of the own Lease is over.
func (a *Allocator) hearFence() {
	if !a.lease.Over() {
		return
	}
	why := a.lease.Why()
	if a.lease.Silent() {
		a.contact.Lost(errors.New(why))
	}
	works := !a.state.Working.Empty()
	if works {
		a.happened.Tell(event.Fenced{ID: a.state.Working.ID, Token: a.work.Token(), FenceAfter: a.o.FenceAfter, Reason: why})
	}
	a.work.Fence(works)
	a.state = a.state.Fenced()
	a.tell()
	a.lease.Forget()
	// The work has that long to stop, and until then what is locked stays locked.
	a.wait.after(a.clock.Now(), a.o.FenceLead+assignment.StopGrace, "its work to stop after a fence: "+why)
}

// listen starts the streams that are missing. A pod that finds itself in the map at its first read needs none before it has its id, and then
// that of its pod only a little later: so it is for most pods when a thousand start at once.
func (a *Allocator) listen(why duty.Duty) {
	if a.agent {
		a.contact.WatchPod()
		return
	}
	if a.view.ok() { // without the permission to read it a watch would hide that, and one that is gone is read again and again
		a.contact.WatchOwner()
	}
	if why.Why != duty.OwnTurn && !a.clock.Now().Before(a.listenAt) {
		a.contact.WatchPod()
	}
	switch {
	case a.state.Lock.State == receipt.Locks:
		a.peers.Leave()
	case why.Why == duty.NoSlot && a.plans.made && a.peers.Follow(a.contact.Streams(), a.view.owner, a.log):
		a.plans.unsureAt = a.clock.Now().Add(a.pace.ReadAgain())
	}
	id := receipt.NoID
	if a.o.Divides {
		id = a.state.Working.ID
	}
	a.peers.FollowNeighbour(a.contact.Streams(), id, a.view.owner, a.clock.Now(), a.log)
}

// newer reports whether version a is later than b, or b is not known. Versions that cannot be compared count as newer.
func newer(a, b string) bool {
	if b == "" {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order > 0
}
