package planner

import (
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/contact"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// awayTime is the interval at which a pod without an owner looks for another one.
const awayTime = 10 * time.Second

// view is the newest known version of the owner.
type view struct {
	owner store.Owner
	state viewState
	// sought is when this process last found that neither the owner nor another one exists. barred is an owner that its Role does not permit.
	sought time.Time
	barred kinds.Ref
	// late: a write of this process got no answer, and there was no news of the owner since.
	late bool
	// fresh: this process has read or written the owner, and has not waited since.
	fresh bool
	// lag tracks the lag of the owner's stream.
	lag     contact.Lag
	request asker
}

// viewState is how much is known about the owner.
type viewState int

const (
	// unread: not read yet, or probably deleted. A read tells.
	unread viewState = iota
	// seen: view.owner is its newest version.
	seen
	// outdated: like seen, but the owner has or may have been written since.
	outdated
	// suspected: like seen, but another object may own the pod now.
	suspected
	// gone: a read has shown that the owner does not exist.
	gone
	// other: another object owns the pod.
	other
)

// ok reports whether there is an owner to act for.
func (v *view) ok() bool { return v.state == seen || v.state == outdated || v.state == suspected }

// alarm returns when time alone changes what is known about the owner.
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

// asker tracks the pod that asks for this pod's slot.
type asker struct {
	// by is the pod that was judged last. granted: it should have the slot.
	by      string
	granted bool
	// told is the last requester named by an event, and refused the last one that an event refused.
	told, refused string
	// denied counts the refused requesters in a row. The next one is judged at nextAt at the earliest, because useless requests may repeat endlessly.
	denied pace.Undone
	nextAt time.Time
}

// wanted returns the pod that should have the slot, empty if there is none.
func (r *asker) wanted() string {
	if !r.granted {
		return ""
	}
	return r.by
}
