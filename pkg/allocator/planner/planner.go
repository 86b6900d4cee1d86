// Package planner is the source of a pod that plans with its peers: the owner's annotations propose, and any of the pods may write them.
package planner

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/census"
	"github.com/idalloc/idalloc/pkg/allocator/contact"
	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/pace"
	"github.com/idalloc/idalloc/pkg/allocator/peers"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/report"
	"github.com/idalloc/idalloc/pkg/allocator/source"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/watch"
)

// Planner holds what one pod knows about its owner and the other pods.
type Planner struct {
	o source.Options
	// pod is this pod as last passed to Heard.
	pod     *metav1.PartialObjectMetadata
	view    view
	plans   plans
	peers   *peers.Peers
	changes *report.Changes
	// listenAt is when to start the watch of this pod.
	listenAt time.Time
}

var _ source.Source = (*Planner)(nil)

// New returns a source that has read nothing.
func New(o source.Options) *Planner {
	return &Planner{o: o, peers: peers.New(o.Store, o.Contact.Wake()), changes: report.NewChanges(o.Pod, o.Strategies, o.Tell)}
}

// Resolve returns the owner that the pod's ownerReferences lead to.
func (p *Planner) Resolve(ctx context.Context, pod *metav1.PartialObjectMetadata, _ identity.Identity) (kinds.Ref, error) {
	p.view, p.plans = view{}, plans{again: p.o.Pace.Backoff()}
	p.pod = pod
	return watch.Resolve(ctx, p.o.Store, pod)
}

// Hear reads the watch of the owner.
func (p *Planner) Hear() {
	stream := p.o.Contact.Owner()
	if stream == nil {
		return
	}
	owner, known, err := stream.Latest()
	if known {
		p.view.lag = contact.Lag{}
	}
	switch {
	case err != nil:
		// Log: the watch delivered an object that makes no sense, such as one with an empty selector.
		// Do: read the error.
		p.o.Log.Error(err, "the owner cannot be read; the id is kept")
	case known && contact.Newer(owner.ResourceVersion, p.view.owner.ResourceVersion):
		p.adopt(owner)
	case !known && stream.Synced() && p.view.state == seen && p.view.lag.Asks("", p.o.Clock.Now()):
		p.view.state = unread // probably deleted
	}
}

// Heard checks whether another object controls the pod now. A pod that lost its controller was relabelled, and keeps its slot.
func (p *Planner) Heard(pod *metav1.PartialObjectMetadata) *receipt.Confirmed {
	was, is := metav1.GetControllerOfNoCopy(p.pod), metav1.GetControllerOfNoCopy(pod)
	if is != nil && (was == nil || was.UID != is.UID) {
		p.view.suspect()
	}
	p.pod = pod
	return nil
}

// Listen starts the missing watches. A pod that finds itself in the map at its first read needs none before it has its id, and needs the watch of its pod
// only a little later. That holds for most pods when a thousand start at once.
func (p *Planner) Listen(why duty.Duty) {
	s, now, c := p.o.Process.State(), p.o.Clock.Now(), p.o.Contact
	if p.view.ok() { // without permission to read the owner a watch would hide the error, and a missing owner is polled
		c.WatchOwner()
	}
	if why.Why != duty.OwnTurn && !now.Before(p.listenAt) {
		c.WatchPod()
	}
	switch {
	case s.Locks.Lock.State == receipt.Locks:
		p.peers.Leave()
	case why.Why == duty.NoSlot && p.plans.made && p.peers.Follow(c.Streams(), p.view.owner, *p.o.Log):
		p.plans.unsureAt = now.Add(p.o.Pace.ReadAgain())
	}
	id := receipt.NoID
	if p.o.Divides {
		id = s.Locks.Working.ID
	}
	p.peers.FollowNeighbour(c.Streams(), id, p.view.owner, now, *p.o.Log)
	p.view.fresh = false
}

// See returns what map and row propose.
func (p *Planner) See(known *duty.Known) duty.View {
	s, owner, now := p.o.Process.State(), p.view.owner, p.o.Clock.Now()
	ok, missing := p.view.ok(), p.view.state == gone
	known.Unseen, known.Turn = p.view.unseen(now), p.plans.turn
	known.Show = ok && surplus(owner) || p.plans.made && !p.named(s, owner) // one plan should serve all pods that run
	v := duty.View{Gone: missing || p.view.state == other, Count: p.count(s), Propose: receipt.Nothing()}
	v.Leaves = v.Gone && (!missing || owner.UID == "") // without its owner it keeps what it has, if it knows the count
	if !ok {
		return v
	}
	offers, mine := p.offers(s)
	v.Propose, v.Yield = offers.To(mine)
	if by := offers.Requester(mine); by != "" && s.Locks.Lock.State == receipt.Locks {
		r := &p.view.request
		judged := r.by == by && (r.granted || p.plans.drops) // a plan may keep a refused requester: it may wait by then
		v.Asks, v.Asked = !judged && !now.Before(r.nextAt), r.wanted() == by
	}
	return v
}

// Facts returns what is known about the owner.
func (p *Planner) Facts() source.Facts {
	s, v := p.o.Process.State(), &p.view
	ok := v.ok()
	return source.Facts{
		Known: ok, Gone: v.state == gone, Other: v.state == other, Owned: v.owner.Count, Count: p.count(s), Counted: ok,
		Named: ok && p.named(s, v.owner), Busy: v.late || !p.plans.turn.IsZero(), Asker: v.request.by, Requester: v.request.wanted(),
		MayWrite: true, TellsEvents: true, About: v.owner.About(),
	}
}

// Alarm returns when time alone changes what this source knows: the earliest alarm of its parts.
func (p *Planner) Alarm(now time.Time) time.Time {
	s := p.o.Process.State()
	mine := s.Receipt()
	at := pace.Soonest(now, p.view.alarm(now), p.plans.alarm(now, p.view.owner, s.Locks.Lock.Share.ID), s.Since.Add(p.view.owner.Wish.GiveBackAfter),
		p.peers.NeighbourEnds(s.Owner), p.peers.NeighbourTurns(), p.listenAt, p.plans.reservedSince.Add(p.o.Pace.Longer(proposal.Reserved(mine.Rank))))
	if failures := mine.Failures(); failures > 0 {
		at = pace.Soonest(now, at, p.o.Began.Add(p.o.Pace.StandBack(failures)))
	}
	return at
}

// Shared reports whether another id has an entry and is a member.
func (p *Planner) Shared() bool {
	offers, me := p.offers(p.o.Process.State())
	return offers.Shared(me)
}

// MadeRoom lists the pods if more live than there are slots.
func (p *Planner) MadeRoom(ctx context.Context) (bool, error) {
	if !surplus(p.view.owner) {
		return false, nil
	}
	pods, err := census.Survey(ctx, p.o.Store, p.view.owner)
	if err != nil {
		p.view.outdate()
		return false, err
	}
	return proposal.MadeRoom(pods, p.o.Pod), nil
}

// Took draws the time to start the watch of this pod.
func (p *Planner) Took() { p.listenAt = p.o.Clock.Now().Add(p.o.Pace.Watch(p.plans.contenders)) }

// Gave forgets the requester, and the plans about the slot that was given up or never taken.
func (p *Planner) Gave() {
	p.view.request = asker{}
	p.plans.made, p.plans.reservedSince, p.plans.vainUntil = false, time.Time{}, time.Time{}
}

// Ends has the owner read again if a write may arrive late, so that the map does not keep naming the pod.
func (p *Planner) Ends() { p.view.late = p.view.late || p.o.Process.State().Locks.Late && p.view.ok() }

// Close ends the watches of other pods.
func (p *Planner) Close() { p.peers.Close() }
