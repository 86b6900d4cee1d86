package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

const (
	mostPods  = 3
	mostParts = 2
	locks     = int8(duty.Locks)
)

// step is one of the protocol that a model may leave out.
type step string

const (
	whole     step = ""
	noList    step = "T3: the others' receipts are not listed"
	noRenewal step = "T2 after a restart: an earlier process's lock is not written again"
	sameBytes step = "new bytes: a lock is written with the bytes of the last one"
	noTest    step = "the swap: a write does not test the receipt that it replaces"
	noRead    step = "the read: a write without an answer counts as carried out"
	fastGive  step = "the wait: work counts as stopped as soon as it is told to stop"
)

// budget bounds a model.
type budget struct {
	pods, slots, parts int
	// writes is how many receipts each pod writes at most.
	writes uint8
	// crashes, unanswered and replaced are how often that happens.
	crashes, unanswered, replaced uint8
	// outlives says that work goes on when its process ends.
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
}

// share, lock and tenure are duty's types in a form that can be the key of a map. parts is a mask.
type share struct {
	id      int8
	divides bool
	parts   uint8
}

type lock struct {
	state int8 // a duty.State
	share share
}

type receipt struct {
	lock
	bytes uint8
}

type tenure struct {
	known, renewed, listed, unsure, stopping, doubts, slotTaken bool
	receipt                                                     receipt
	partsTaken                                                  uint8
	working, keep                                               share
}

type pod struct {
	receipt receipt
	alive   bool
	tenure  tenure
	// work is where programs really are at work.
	work share
	// late says that a write may still arrive: to replaces the receipt with the bytes from. The test of the UID
	// keeps it from a new pod of the same name.
	late bool
	from uint8
	to   receipt
	// wrote counts receipts, and is the bytes of the newest one.
	wrote uint8
}

type world struct {
	pods                          [mostPods]pod
	crashes, unanswered, replaced uint8
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

func nothing() share { return share{id: duty.NoID} }

func (m *model) first() world {
	w := world{crashes: m.crashes, unanswered: m.unanswered, replaced: m.replaced}
	for i := range w.pods {
		w.pods[i] = newPod(0)
	}
	return w
}

func newPod(wrote uint8) pod {
	return pod{receipt: receipt{lock: lock{share: nothing()}}, tenure: fresh(), work: nothing(), wrote: wrote}
}

// fresh is what a process knows that starts.
func fresh() tenure {
	return tenure{receipt: receipt{lock: lock{share: nothing()}}, unsure: true, working: nothing(), keep: nothing()}
}

// next returns all worlds that may come next.
func (m *model) next(w world) (out []edge) {
	for i := range m.pods {
		out = append(out, m.faults(w, i)...)
		p := w.pods[i]
		if !p.alive {
			to := w
			to.pods[i].alive, to.pods[i].tenure = true, fresh()
			out = append(out, edge{pod: i, what: "starts", to: to})
			continue
		}
		if p.tenure.stopping {
			to := w
			to.pods[i].stopped()
			out = append(out, edge{pod: i, what: "hears that work has stopped", to: to})
		}
		if p.tenure.doubts {
			to := w
			to.pods[i].tenure.doubts = false
			out = append(out, edge{pod: i, what: "has doubted long enough", to: to})
		}
		for _, a := range m.actions(p.tenure) {
			out = append(out, m.do(w, i, a)...)
		}
	}
	return out
}

// actions returns all that a process may do next, whatever is wanted of it.
func (m *model) actions(t tenure) []action {
	if known, ok := m.known[t]; ok {
		return known
	}
	var out []action
	for _, wish := range m.wishes() {
		d := duty.Next(t.shipped(), wish)
		a := action{do: d.Do, lock: lockOf(d.Lock), share: shareOf(d.Share)}
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	m.known[t] = out
	return out
}

// faults returns what may happen to a pod that it does not do itself.
func (m *model) faults(w world, i int) (out []edge) {
	p := w.pods[i]
	if p.late {
		to := w
		q := &to.pods[i]
		if q.receipt.bytes == p.from || m.without == noTest {
			q.receipt = p.to
		}
		q.late, q.from, q.to = false, 0, receipt{}
		out = append(out, edge{pod: i, what: "gets its late write", about: p.to.lock, to: to, fault: true})
	}
	if w.crashes > 0 && p.alive {
		to := w
		to.crashes--
		q := &to.pods[i]
		q.alive, q.tenure = false, fresh()
		if !m.outlives {
			q.work = nothing()
		}
		out = append(out, edge{pod: i, what: "loses its process", to: to, fault: true})
	}
	if w.replaced > 0 {
		to := w
		to.replaced--
		to.pods[i] = newPod(p.wrote)
		out = append(out, edge{pod: i, what: "is replaced under its name", to: to, fault: true})
	}
	return out
}

// do returns what may come of an action.
func (m *model) do(w world, i int, a action) []edge {
	to := w
	p := &to.pods[i]
	switch a.do {
	case duty.Read:
		p.read(m.without)
		return []edge{{pod: i, what: "reads its pod:", about: p.receipt.lock, to: to}}
	case duty.Write:
		return m.write(w, i, a.lock)
	case duty.List:
		p.tenure.listed, p.tenure.slotTaken, p.tenure.partsTaken = true, false, 0
		if m.without != noList {
			p.tenure.slotTaken, p.tenure.partsTaken = w.others(i, p.tenure.receipt.share)
		}
		return []edge{{pod: i, what: "lists the other receipts (T3)", to: to}}
	case duty.Begin:
		p.work = a.share
		p.tenure.working = p.work
		return []edge{{pod: i, what: "begins", about: lock{locks, p.work}, to: to}}
	case duty.Stop:
		p.tenure.stopping, p.tenure.keep = true, a.share
		if m.without == fastGive {
			p.tenure.stopping, p.tenure.unsure, p.tenure.working = false, false, p.tenure.keep
		}
		return []edge{{pod: i, what: "stops all but", about: lock{locks, p.tenure.keep}, to: to}}
	case duty.Rest:
	}
	return nil
}

// read is a read of the own pod. A process that starts takes what the receipt locks for what may be at work, and doubts another receipt for it.
func (p *pod) read(without step) {
	t := &p.tenure
	t.receipt, t.known, t.renewed, t.listed, t.slotTaken, t.partsTaken = p.receipt, true, false, false, false, 0
	if p.receipt.state == locks {
		if t.unsure {
			t.working = p.receipt.share
		}
		t.doubts = true
		if without == noRenewal {
			t.renewed = true
		}
	}
}

func (p *pod) stopped() {
	t := &p.tenure
	if p.work.id != t.keep.id {
		p.work = nothing()
	} else {
		p.work.parts &= t.keep.parts
	}
	t.stopping, t.unsure, t.working, t.keep = false, false, t.keep, nothing()
}

// write returns the outcomes of a swap of the receipt.
func (m *model) write(w world, i int, l lock) []edge {
	p := w.pods[i]
	if p.wrote >= m.writes {
		return nil
	}
	r := receipt{lock: l, bytes: p.wrote + 1}
	if m.without == sameBytes && l == p.tenure.receipt.lock {
		r.bytes = p.tenure.receipt.bytes
	}
	if p.receipt.bytes != p.tenure.receipt.bytes && m.without != noTest {
		to := w
		to.pods[i].tenure.known = false
		return []edge{{pod: i, what: "fails to write", about: l, to: to}}
	}
	to := w
	q := &to.pods[i]
	q.wrote++
	q.receipt, q.tenure.receipt = r, r
	q.tenure.renewed, q.tenure.listed, q.tenure.slotTaken, q.tenure.partsTaken = true, false, false, 0
	q.tenure.doubts = p.tenure.doubts && l == p.tenure.receipt.lock
	out := []edge{{pod: i, what: "writes (T2)", about: l, to: to}}
	if w.unanswered > 0 && !p.late {
		to := w
		to.unanswered--
		q := &to.pods[i]
		q.wrote++
		q.tenure.known, q.late, q.from, q.to = false, true, p.tenure.receipt.bytes, r
		if m.without == noRead {
			q.tenure.known, q.tenure.receipt, q.tenure.renewed, q.tenure.listed = true, r, true, false
		}
		out = append(out, edge{pod: i, what: "gets no answer to the write of", about: l, to: to, fault: true})
	}
	return out
}

// others is what a list of the other receipts says of a share.
func (w world) others(i int, s share) (slot bool, parts uint8) {
	for j, p := range w.pods {
		if j != i && p.receipt.state == locks {
			slot = slot || p.receipt.share.id == s.id
			parts |= p.receipt.share.parts & s.parts
		}
	}
	return slot, parts
}

// two reports whether two pods are at work on one thing.
func (w world) two() bool {
	for i, p := range w.pods {
		for _, q := range w.pods[:i] {
			if p.work.id != duty.NoID && p.work.id == q.work.id || p.work.parts&q.work.parts != 0 {
				return true
			}
		}
	}
	return false
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
func (m *model) wishes() (out []duty.Wish) {
	out = append(out, duty.Wish{Give: true, Propose: duty.Nothing()}, duty.Wish{Propose: duty.Nothing(), WaitAgain: true})
	for id := range m.slots {
		for parts := range uint8(1) << m.parts {
			for yield := range uint8(1) << m.parts {
				out = append(out, duty.Wish{Propose: duty.Share{ID: id, Divides: m.parts > 0, Partitions: set(parts)}, Yield: set(yield)})
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

func shareOf(s duty.Share) share {
	return share{id: int8(s.ID), divides: s.Divides, parts: mask(s.Partitions)} //nolint:gosec // an id below 3
}

func (s share) shipped() duty.Share {
	return duty.Share{ID: int(s.id), Divides: s.divides, Partitions: set(s.parts)}
}

func lockOf(l duty.Lock) lock { return lock{state: int8(l.State), share: shareOf(l.Share)} } //nolint:gosec // one of four

// String is for histories.
func (l lock) String() string {
	switch duty.State(l.state) {
	case duty.Waits:
		return "waits"
	case duty.GaveUp:
		return "gave up"
	case duty.Locks:
		return l.share.String()
	case duty.None:
	}
	return "no receipt"
}

// String is for histories.
func (s share) String() string {
	if s.id == duty.NoID {
		return "nothing"
	}
	return fmt.Sprintf("slot %d, partitions %02b", s.id, s.parts)
}

func (t tenure) shipped() duty.Tenure {
	return duty.Tenure{
		Known: t.known, Lock: duty.Lock{State: duty.State(t.receipt.state), Share: t.receipt.share.shipped()}, Renewed: t.renewed,
		Listed: t.listed, Others: duty.Others{Slot: t.slotTaken, Partitions: set(t.partsTaken)},
		Working: t.working.shipped(), Unsure: t.unsure, Stopping: t.stopping, Keep: t.keep.shipped(), Doubts: t.doubts,
	}
}
