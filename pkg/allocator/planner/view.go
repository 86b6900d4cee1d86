package planner

import (
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/contact"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// awayTime is how often a pod without an owner looks for another one.
const awayTime = 10 * time.Second

// view is the newest moment of the owner.
type view struct {
	owner store.Owner
	state viewState
	// sought is when this process last found that neither the owner nor another one exists. barred is one that its Role does not permit.
	sought time.Time
	barred store.Ref
	// late: a write of this process had no answer, and nothing was heard of the owner since.
	late bool
	// fresh: this process has read or written the owner, and has not waited since.
	fresh bool
	// lag is that of the stream of the owner.
	lag     contact.Lag
	request request
}

// viewState says what is known of the owner.
type viewState int

const (
	// unread: it was not read yet, or has been deleted, it seems. A read tells.
	unread viewState = iota
	// seen: view.owner is its newest moment.
	seen
	// outdated: as seen, but the owner has been written since, or may have been.
	outdated
	// suspected: as seen, but another object may own the pod now.
	suspected
	// gone: a read has shown that it does not exist.
	gone
	// other: another object owns the pod.
	other
)

// ok reports whether there is an owner to act for.
func (v *view) ok() bool { return v.state == seen || v.state == outdated || v.state == suspected }

// alarm is when time alone changes what is known of the owner.
func (v *view) alarm(now time.Time) time.Time {
	return pace.Soonest(now, v.lag.Until(), v.sought.Add(awayTime), v.request.nextAt)
}

// unseen reports whether the owner must be read.
func (v *view) unseen(now time.Time) bool {
	switch v.state {
	case seen, other:
		return v.late
	case gone:
		return !now.Before(v.sought.Add(awayTime))
	case unread, outdated, suspected:
	}
	return true
}

// outdate has the owner read again.
func (v *view) outdate() {
	if v.state == seen {
		v.state = outdated
	}
}

// suspect has the process find out whether another object owns the pod now.
func (v *view) suspect() {
	switch v.state {
	case unread, seen, outdated:
		v.state = suspected
	case gone:
		v.sought = time.Time{}
	case suspected, other:
	}
}

// request is the pod that asks for this pod's slot.
type request struct {
	// by is the pod that was judged last. granted: it should have the slot.
	by      string
	granted bool
	// told is the requester that an event named last, and refused the one that an event refused last.
	told, refused string
	// denied counts in a row the pods that asked and should not have it. The next one is judged at nextAt at the earliest: requests in vain may come again
	// and again.
	denied pace.Undone
	nextAt time.Time
}

// wanted is the pod that should have the slot, empty if there is none.
func (r *request) wanted() string {
	if !r.granted {
		return ""
	}
	return r.by
}
