package allocator

import (
	"context"
	"slices"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/ownership"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// Partitions are the options of a process that works on partitions.
type Partitions struct {
	// Publish is called with what the process may work on after each change, from the goroutine of Run or Claim. It must not block
	// for long. When it returns, no work begins on partitions that it does not name, and on those that are to stop.
	Publish func(Shares)
	// Stop blocks until the work on some partitions has stopped. It is called after they were published as stopping, or taken out of what
	// is published. If its context ends first, the work need not stop any more: Stop must return, and what is published next says
	// what goes on. After an error it is called again. Several calls may be under way, for different partitions.
	Stop func(context.Context, PartitionStop) error
	// InProcess says that the work on partitions ends with this process, however the process ends. So nothing is left of the work of
	// an earlier process of the pod.
	InProcess bool
	// Left returns partitions on which work of an earlier process of the pod with this UID may go on, as far as this process knows beside the
	// pod's receipt, which somebody may have removed: those that its files show. It is called once, by New. It may be nil.
	Left func(uid string) placement.Set
	// Keeps says that the process cannot know when work on some of its partitions has stopped. It yields none, and they move only
	// with its slot.
	Keeps bool
	// Pause is received from while the process holds an id: true has it yield all partitions and take none, until false comes. The next
	// process of the pod goes on with a pause. It may be nil, and is of no use with Keeps.
	Pause <-chan bool
	// RestsAfterFailures says that after three failures in a row the process pauses for a while, so that other pods work on its
	// partitions meanwhile (see Options.Stopped and Release for what a failure is).
	RestsAfterFailures bool
	// Strategies are strategies of this program, by name, beside those of package partition.
	Strategies map[string]placement.Strategy
}

// Shares is what a process works on.
type Shares struct {
	// Identity is the identity that goes with them. While it is not assigned, nothing is owned.
	Identity identity.Identity
	// Count is the number of partitions of the workload.
	Count int
	// Owned are the partitions that the process may work on, in ascending order of their first partition. No two have a
	// partition in common.
	Owned []Share
	// Stopping are those of them on which work is to stop.
	Stopping placement.Set
	// Stop is the number of the last stop. Each stop has a number of its own.
	Stop int
}

// Share is a set of partitions that were taken together.
type Share struct {
	Set placement.Set
	// Token is a fencing token. The next pod that owns a partition of the set has a higher one.
	Token int64
}

// PartitionStop says which work is to stop.
type PartitionStop struct {
	Set placement.Set
	// Number tells this stop from others.
	Number int
	// Lost says that the partitions are another id's already, or nobody's.
	Lost bool
}

// shares is what this process works on beside its id. The zero value is that of a process that works on no partitions.
type shares struct {
	// on are the options, nil if the process works on none.
	on *Partitions
	// owned are the partitions whose take was confirmed, without those whose work has stopped.
	owned []Share
	// id is the id that all of this is about.
	id int
	// yielded are the partitions that this process yields, or one before it, until a live read has shown that the map does not give
	// them to this id.
	yielded placement.Set
	// left are the partitions on which work may go on: that of this process from before its id was withdrawn, or Partitions.Left.
	left placement.Set
	// stops are under way. number is that of the last.
	stops  []*partitionStop
	number int
	// count is the number of partitions, as a clean map last said. told says that Publish was called with what is known now.
	count int
	told  bool
}

// partitionStop is one stop under way.
type partitionStop struct {
	PartitionStop
	cancel context.CancelFunc
}

// held returns the partitions that the process works on.
func (s *shares) held() placement.Set {
	var all placement.Set
	for _, share := range s.owned {
		all = all.Union(share.Set)
	}
	return all
}

// add notes that a take was confirmed by this state.
func (s *shares) add(set placement.Set, by assignment.State) {
	if set = set.Minus(s.held()); set.Empty() {
		return
	}
	s.counts(by.Partitions.Count)
	s.owned = append(s.owned, Share{set, by.Epoch})
	s.sort()
	s.told = false
}

// remove notes that the process does not work on the partitions any more.
func (s *shares) remove(set placement.Set) {
	for i := range s.owned {
		s.owned[i].Set = s.owned[i].Set.Minus(set)
	}
	s.owned = slices.DeleteFunc(s.owned, func(share Share) bool { return share.Set.Empty() })
	s.sort()
	s.told = false
}

func (s *shares) sort() {
	first := func(set placement.Set) int {
		for k := range set.All() {
			return k
		}
		return 0
	}
	slices.SortFunc(s.owned, func(a, b Share) int { return first(a.Set) - first(b.Set) })
}

// stopping returns the partitions whose work is being stopped.
func (s *shares) stopping() placement.Set {
	var all placement.Set
	for _, stop := range s.stops {
		all = all.Union(stop.Set)
	}
	return all
}

// tell publishes what the process works on, if that is news.
func (s *shares) tell(id identity.Identity) (news bool) {
	if s.on == nil || s.told {
		return false
	}
	s.told = true
	s.on.Publish(s.shown(id))
	return true
}

// counts notes how many partitions there are.
func (s *shares) counts(count int) {
	if count != s.count {
		s.count, s.told = count, false
	}
}

// hush publishes that the process may work on nothing, because it has no id.
func (s *shares) hush(id identity.Identity) {
	if s.on != nil {
		s.told = false
		s.on.Publish(Shares{Identity: id, Stop: s.number})
	}
}

// shown returns what is to be published. The map names partitions beyond a lower number until they are yielded. No work begins on them, so they
// are published as stopping even if their stop has not begun.
func (s *shares) shown(id identity.Identity) Shares {
	held := s.held()
	stopping := s.stopping().Intersect(held).Union(held.Minus(placement.Between(0, s.count-1)))
	return Shares{Identity: id, Count: s.count, Owned: slices.Clone(s.owned), Stopping: stopping, Stop: s.number}
}

// finder finds a strategy by its name.
type finder = func(name string) (placement.Strategy, error)

// strategy finds a strategy by its name.
func (s *shares) strategy(name string) (placement.Strategy, error) {
	if s.on != nil {
		if own, known := s.on.Strategies[name]; known {
			return own, nil
		}
	}
	return placement.Named(name)
}

// viewOf returns a moment of the owner as the holder of the id sees it. In strict mode one with a shorter fence-after is not clean: planners
// would not wait for this process.
func (a *Allocator) viewOf(owner store.Owner, id int) ownership.View {
	return ownership.View{
		Count: owner.Count, Row: owner.Record.State.Partitions, ID: id, Paused: a.pause.active, Target: owner.Wish.Target, Strategies: a.shares.strategy,
		Clean: owner.PartitionsClean() && owner.Names(id, a.o.Pod, a.pod.UID) && owner.Obeys(a.o.FenceAfter),
	}
}

// locked returns the partitions that this pod's receipt locks.
func (p *ownPod) locked() placement.Set {
	if r := p.receipt(); r.Locks() && r.Partitions != nil {
		return *r.Partitions
	}
	return placement.Set{}
}

// lockPartitions writes the receipt with other partitions. The epoch is raised only if all that is locked was confirmed at it.
func (a *Allocator) lockPartitions(ctx context.Context, lock, yields placement.Set, epoch int64) error {
	r := a.locking(lock, yields, epoch)
	return a.writeReceipt(ctx, &r)
}

// locking is the receipt that lockPartitions writes. The next process takes its epoch for the beginning of the work (see recent). So failures
// of long ago are not on it any more.
func (a *Allocator) locking(lock, yields placement.Set, epoch int64) assignment.Receipt {
	r := *a.receipt()
	r.Partitions, r.Yields, r.Paused = &lock, yields, a.pause.active
	r.Epoch, r.Failed = max(r.Epoch, epoch), a.failures(false)
	return r
}

// withShares adds to a receipt for slot id what the process is to lock of what a moment of the owner gives to the id. before is the
// receipt of an earlier process of this pod, or nil.
func (a *Allocator) withShares(r *assignment.Receipt, before *assignment.Receipt, from store.Owner) {
	s := &a.shares
	if s.on == nil {
		return
	}
	var lock placement.Set
	if s.id != r.ID {
		s.id, s.yielded = r.ID, placement.Set{}
	}
	a.beginPause(before, from, r.ID)
	if before.Locks() && before.ID == r.ID {
		// A process that is paused begins to work on nothing, so it locks nothing that nobody works on.
		if before.Partitions != nil && (!a.pause.active || !s.on.InProcess) {
			lock = *before.Partitions
		}
		s.yielded = s.yielded.Union(before.Yields)
	}
	lock = lock.Union(s.left)
	lock = lock.Union(ownership.DutiesAt(a.viewOf(from, r.ID), placement.Set{}, lock, s.yielded, s.on.Keeps).Take)
	r.Partitions, r.Yields, r.Keeps, r.Paused = &lock, s.yielded, s.on.Keeps, a.pause.active
}

// confirmShares returns which of the partitions that the receipt locks the owner confirms, and which stay locked: those, and what this
// process worked on before, or an earlier one of the pod, and may still work on.
func (a *Allocator) confirmShares(now store.Owner, id int, before *assignment.Receipt) (confirmed, kept placement.Set) {
	if a.shares.on == nil {
		return confirmed, kept
	}
	confirmed = a.locked().Intersect(a.viewOf(now, id).Mine()).Minus(a.shares.yielded)
	kept = confirmed.Union(a.shares.left)
	if before.Locks() && before.ID == id && before.Partitions != nil && !a.shares.on.InProcess {
		kept = kept.Union(*before.Partitions)
	}
	return confirmed, kept
}

// drop notes that the process may work on nothing any more, because its id is gone. The work has not stopped yet: what goes on of it has
// to be locked again by the next take, so that it is not yielded or lost before it has stopped. What the process yields it does not forget.
func (s *shares) drop() {
	s.left = s.left.Union(s.held()).Union(s.stopping())
	s.owned = nil
}

// forget forgets also what the process yields, because all of its work has stopped and its receipt is about to say that it gives its slot,
// with all that it yields.
func (s *shares) forget() { s.owned, s.yielded, s.left = nil, placement.Set{}, placement.Set{} }
