package planner

import (
	"math"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/source"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

const (
	// joinTime is how long a holder waits before it joins the members: one write serves all holders that start together.
	joinTime = time.Second
	// firstJoinTime is that wait if there are no members yet.
	firstJoinTime = 3 * time.Second
)

// count returns the number of slots that applies to this pod. A condemned pod keeps its slot until Kubernetes removes it. With the policy OrderedReady,
// Kubernetes removes such pods one after the other, and only Ready ones.
func (p *Planner) count(s source.State) int {
	n, id := p.view.owner.Count, s.Locks.Lock.Share.ID
	if id >= n && p.view.owner.Condemned(s.Pod) {
		return max(s.Count, id+1)
	}
	return n
}

// named reports whether the map names this pod for the slot that it locks, or for any slot if it locks none.
func (p *Planner) named(s source.State, owner store.Owner) bool {
	if lock := s.Locks.Lock; lock.State == receipt.Locks {
		return owner.Record.State.Slots[lock.Share.ID] == p.o.Pod
	}
	_, named := owner.Record.State.Slots.Of(p.o.Pod)
	return named
}

// offers returns what the owner's annotations propose.
func (p *Planner) offers(s source.State) (*proposal.Offers, proposal.Mine) {
	o := p.view.owner
	return proposal.NewOffers(o.Count, o.Record.State, o.Wish, p.o.Strategies), proposal.Mine{
		Pod: p.o.Pod, Divides: p.o.Divides, Pauses: s.Pauses, HandsOver: p.o.HandsOver, Locked: s.Locks.Lock.Share, Works: s.Locks.Working,
	}
}

// input returns the input of a plan for these pods.
func (p *Planner) input(s source.State, pods []proposal.Pod, rollout proposal.Rollout) proposal.Input {
	owner, now := p.view.owner, p.o.Clock.Now()
	in := proposal.Input{
		Count: owner.Count, State: owner.Record.State, Pods: pods, Me: p.o.Pod, Rollout: rollout, Room: owner.Room(), Now: now,
		Partitions: proposal.Division{
			Wish: owner.Wish, Vacant: p.plans.vacant.Over(owner.Wish.FailoverAfter, now), AtOnce: !owner.Wish.HasFailoverAfter && !owner.RollsNow,
			Joins: p.joins(s), Strategies: p.o.Strategies,
		},
	}
	if failures := s.Receipt().Failures(); failures > 0 {
		in.StandsBack = now.Sub(p.o.Began) < p.o.Pace.StandBack(failures)
	}
	if since := p.plans.reservedSince; !since.IsZero() {
		in.FreeFor = time.Duration(math.Ceil(float64(now.Sub(since)) * float64(time.Second) / float64(p.o.Pace.Longer(time.Second))))
	}
	return in
}

// joins returns this pod's id if the pod has held it long enough to join the members (strategy primary).
func (p *Planner) joins(s source.State) map[int]bool {
	at := s.Locks.Working
	return map[int]bool{at.ID: !at.Empty() && p.o.Clock.Since(s.Since) >= p.view.owner.Wish.GiveBackAfter}
}

// joinIn returns the extra delay for a holder that is not a member yet.
func (p *Planner) joinIn(s source.State) time.Duration {
	row := p.view.owner.Record.State.Row
	switch {
	case !p.o.Divides || s.Pauses || !p.view.owner.Wish.HasCount && row == nil:
		return 0
	case row == nil || len(row.Owners) == 0:
		return firstJoinTime
	}
	if _, listed := row.Owners[s.Locks.Lock.Share.ID]; !listed {
		return joinTime
	}
	return 0
}
