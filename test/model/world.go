package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
)

const (
	mostPods  = 3
	mostSlots = 2
	mostParts = 2
	locks     = int8(receipt.Locks)
	// noHolder is the holder of a free Lease. A pod that was deleted by force holds one under its index plus mostPods.
	noHolder = -1
)

// step is one of the protocol that a model may leave out.
type step string

const (
	whole       step = ""
	noList      step = "T3: the others' receipts are not listed"
	noRenewal   step = "T2 after a restart: an earlier process's lock is not written again"
	sameBytes   step = "new bytes: a lock is written with the bytes of the last one"
	noTest      step = "the swap: a write does not test the receipt that it replaces"
	noRead      step = "the read: a write without an answer counts as carried out"
	fastGive    step = "the wait: work counts as stopped as soon as it is told to stop"
	noSurvey    step = "T3 in strict mode: the others' Leases are not listed"
	noLease     step = "T2 in strict mode: a Lease is taken although another pod has it"
	noRefence   step = "T3 after an interruption: work continues under a Lease that is renewed"
	noParts     step = "the parts: all has stopped that was told to, as soon as a part of it has"
	noLoosening step = "T3 in strict mode: a Lease that was told to go without an answer counts as held"
	noStrict    step = "T3 in strict mode: the receipts of strict pods are not listed"
	noMark      step = "T3 in strict mode: a receipt that no strict process wrote counts as that of a strict pod"
	noHeld      step = "a restart: a holder gives way to a pod that came later"
	early       step = "a restart: an earlier process's lock counts as held, whatever it says"
)

// budget bounds a model.
type budget struct {
	pods, slots, parts int
	// strict says which pods are strict from the start, by index.
	strict [mostPods]bool
	// writes is how many receipts each pod writes at most.
	writes uint8
	// crashes, hardened, unanswered, replaced, cut, forced, overdue, removed and stripped are how often that happens: a process ends, a pod is strict
	// from its next process on, a write gets no answer, a pod is replaced under its name after its processes ended, a strict pod has no contact, a
	// strict pod is deleted by force while it works, a strict pod outlives its grace period, and another client removes a receipt, or a Lease.
	crashes, hardened, unanswered, replaced, cut, forced, overdue, removed, stripped uint8
	// outlives says that work does not stop when its process ends.
	outlives bool
	without  step
	// progress has it look for worlds from which the slots cannot come to be held.
	progress bool
}

// model is a budget with what is known of the shipped decisions.
type model struct {
	budget

	known map[tenure][]action
}

// action is a duty in a form that can be compared.
type action struct {
	do    duty.Do
	lock  lock
	share share
	part  part
}

// share, part, lock and tenure are the shipped types in a form that can be the key of a map. parts is a mask.
type share struct {
	id      int8
	divides bool
	parts   uint8
}

type part struct {
	all   bool
	parts uint8
}

type lock struct {
	state int8 // a receipt.State
	share share
	held  held
}

type held struct {
	slot  bool
	parts uint8
}

type written struct {
	lock
	bytes uint8
	// strict says that a strict process wrote it.
	strict bool
}

type tenure struct {
	known, renewed, listed, surveyed, unbroken, doubts, slotTaken, strict, loose, late, leaseTaken bool
	receipt                                                                                        written
	partsTaken                                                                                     uint8
	working, lease                                                                                 share
	stopping, calledOff                                                                            part
}

type pod struct {
	receipt written
	alive   bool
	// strict says that its processes are strict from now on.
	strict bool
	tenure tenure
	// work is where programs really are at work. ghost is that of a strict pod that was deleted by force.
	work, ghost share
	// late says that a write may still arrive: to replaces the receipt with the bytes from. The test of the UID
	// keeps it from a new pod of the same name.
	late bool
	from uint8
	to   written
	// wrote counts receipts, and is the bytes of the newest one.
	wrote uint8
	// misled says that its Lease is free and that its clock does not say so.
	misled bool
	// overdue says that it has outlived its grace period.
	overdue bool
}

// lease is the Lease of one slot.
type lease struct {
	holder  int8
	expired bool
	parts   uint8
	// loose says that a write may still arrive that lets it go. It tests the version, so the next write of the Lease ends that.
	loose bool
}

type world struct {
	pods   [mostPods]pod
	leases [mostSlots]lease

	crashes, hardened, unanswered, replaced, cut, forced, overdue, removed, stripped uint8
}

// edge is one step from a world to the next: what a pod does or what happens to it, with the receipt that it is about. fault says that the
// protocol does not take it.
type edge struct {
	pod   int
	what  string
	about lock
	to    world
	fault bool
}

// String is for histories.
func (e edge) String() string {
	return strings.TrimSuffix(fmt.Sprintf("pod %d %s %v", e.pod, e.what, e.about), " no receipt")
}

func nothing() share { return share{id: receipt.NoID} }

func (m *model) first() world {
	w := world{
		crashes: m.crashes, hardened: m.hardened, unanswered: m.unanswered, replaced: m.replaced, cut: m.cut, forced: m.forced, overdue: m.overdue,
		removed: m.removed, stripped: m.stripped,
	}
	for i := range w.pods {
		w.pods[i] = newPod(m.strict[i], 0)
	}
	for i := range w.leases {
		w.leases[i].holder = noHolder
	}
	return w
}

func newPod(strict bool, wrote uint8) pod {
	return pod{
		receipt: written{lock: lock{share: nothing()}}, strict: strict, tenure: fresh(strict, nothing()), work: nothing(), ghost: nothing(), wrote: wrote,
	}
}

// fresh is what a process knows that starts. Its files say on what work may go on.
func fresh(strict bool, left share) tenure {
	return tenureOf(duty.Start(strict, left.shipped()), written{})
}

// actions returns all that a process may do next, whatever is wanted of it.
func (m *model) actions(t tenure) []action {
	if known, ok := m.known[t]; ok {
		return known
	}
	var out []action
	for _, wish := range m.wishes() {
		d := duty.Step(t.shipped(), wish)
		a := action{do: d.Do, lock: lockOf(d.Lock), share: shareOf(d.Share), part: partOf(d.Part)}
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	m.known[t] = out
	return out
}

// two reports whether two are at work on one thing.
func (w world) two() bool {
	for i, p := range w.pods {
		for _, q := range w.pods[:i] {
			if p.work.meets(q.work) || p.work.meets(q.ghost) || p.ghost.meets(q.work) {
				return true
			}
		}
		if p.work.meets(p.ghost) {
			return true
		}
	}
	return false
}

// yields reports whether a pod is about to give way although its lock says that it holds the slot.
func (w world) yields() bool {
	for _, p := range w.pods {
		t := p.tenure
		if taken := t.slotTaken || t.leaseTaken && t.doubts; p.alive && t.known && taken && t.receipt == p.receipt && t.receipt.held.slot {
			return true
		}
	}
	return false
}

func (s share) meets(t share) bool {
	return s.id != receipt.NoID && s.id == t.id || s.parts&t.parts != 0
}

// heard reports whether each pod knows what stands on it, so that no moment remains in which one has to hear of a removal.
func (w world) heard() bool {
	for _, p := range w.pods {
		if p.alive && p.tenure.known && p.receipt.bytes != p.tenure.receipt.bytes {
			return false
		}
		if !p.alive && p.work != nothing() || p.tenure.stopping != (part{}) || p.alive && !p.tenure.known {
			return false
		}
		if r := p.tenure.receipt.share; p.tenure.working.id != receipt.NoID && p.tenure.working.id != r.id || p.tenure.working.parts&^r.parts != 0 {
			return false // it is about to stop that work
		}
	}
	return true
}

// held reports whether all slots are worked under.
func (m *model) held(w world) bool {
	for id := range min(m.slots, m.pods) {
		found := false
		for _, p := range w.pods {
			found = found || int(p.work.id) == id && p.alive
		}
		if !found {
			return false
		}
	}
	return true
}

// wishes are all that may be wanted of a process.
func (m *model) wishes() (out []duty.Desired) {
	out = append(out, duty.Desired{Give: true, Propose: receipt.Nothing()}, duty.Desired{Propose: receipt.Nothing(), WaitAgain: true, Show: true},
		duty.Desired{Give: true, Ends: true, Propose: receipt.Nothing()}, duty.Desired{Propose: receipt.Nothing(), Note: true})
	for id := range m.slots {
		for parts := range uint8(1) << m.parts {
			for yield := range uint8(1) << m.parts {
				propose := share{int8(id), m.parts > 0, parts}
				out = append(out, duty.Desired{Propose: propose.shipped(), Yield: set(yield)})
			}
		}
	}
	return out
}

func set(mask uint8) (s placement.Set) {
	for p := range mostParts {
		if mask&(1<<p) != 0 {
			s = s.Union(placement.Of(p))
		}
	}
	return s
}

func mask(s placement.Set) (out uint8) {
	for p := range mostParts {
		if s.Contains(p) {
			out |= 1 << p
		}
	}
	return out
}

func shareOf(s receipt.Share) share {
	return share{id: int8(s.ID), divides: s.Of > 0, parts: mask(s.Partitions)} //nolint:gosec // an id below 3
}

func (s share) shipped() receipt.Share {
	of := 0
	if s.divides {
		of = mostParts
	}
	return receipt.Share{ID: int(s.id), Of: of, Partitions: set(s.parts)}
}

// minus is the share without a part of it.
func (s share) minus(p part) share {
	if p.all {
		return nothing()
	}
	s.parts &^= p.parts
	return s
}

func partOf(p duty.Part) part { return part{p.All, mask(p.Partitions)} }

func (p part) shipped() duty.Part { return duty.Part{All: p.all, Partitions: set(p.parts)} }

func lockOf(l duty.Lock) lock {
	return lock{int8(l.State), shareOf(l.Share), held{l.Held.Slot, mask(l.Held.Partitions)}} //nolint:gosec // one of five
}

func (l lock) shipped() duty.Lock {
	return duty.Lock{State: receipt.State(l.state), Share: l.share.shipped(), Held: duty.Held{Slot: l.held.slot, Partitions: set(l.held.parts)}}
}

// String is for histories.
func (l lock) String() string {
	switch receipt.State(l.state) {
	case receipt.Waits:
		return "waits"
	case receipt.GaveUp:
		return "gave up"
	case receipt.Locks:
		if l.held.slot {
			return l.share.String() + ", held"
		}
		return l.share.String()
	case receipt.None, receipt.Unreadable:
	}
	return "no receipt"
}

// String is for histories.
func (s share) String() string {
	if s.id == receipt.NoID {
		return "nothing"
	}
	return fmt.Sprintf("slot %d, partitions %02b", s.id, s.parts)
}

func (t tenure) shipped() duty.LockState {
	return duty.LockState{
		Known: t.known, Lock: t.receipt.shipped(), Renewed: t.renewed, Listed: t.listed, Surveyed: t.surveyed, Unbroken: t.unbroken,
		Others: duty.Others{Slot: t.slotTaken, Partitions: set(t.partsTaken)}, Working: t.working.shipped(),
		Stopping: t.stopping.shipped(), CalledOff: t.calledOff.shipped(), Doubts: t.doubts, Strict: t.strict, Lease: t.lease.shipped(), Unsure: t.loose, Late: t.late,
		Taken: t.leaseTaken,
	}
}

// tenureOf is the inverse of shipped. stands is the receipt that the process knows.
func tenureOf(t duty.LockState, stands written) tenure {
	stands.lock = lockOf(t.Lock)
	return tenure{
		known: t.Known, receipt: stands, renewed: t.Renewed, listed: t.Listed, surveyed: t.Surveyed, unbroken: t.Unbroken,
		slotTaken: t.Others.Slot, partsTaken: mask(t.Others.Partitions), working: shareOf(t.Working),
		stopping: partOf(t.Stopping), calledOff: partOf(t.CalledOff), doubts: t.Doubts, strict: t.Strict, lease: shareOf(t.Lease), loose: t.Unsure, late: t.Late,
		leaseTaken: t.Taken,
	}
}

// note takes in what came of a step, by one of the shipped transitions.
func (t *tenure) note(change func(duty.LockState) duty.LockState) {
	*t = tenureOf(change(t.shipped()), t.receipt)
}
