package model

import (
	"fmt"
	"slices"

	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// tenure is a duty.LockState without partitions and strict mode, in a form that can be the key of a map.
type tenure struct {
	known, renewed, listed, unbroken, stopping, off, doubts, taken, late bool
	state, slot, working                                                 int8
}

// peer is the process of a pod that takes for itself, be it a peer or an agent.
type peer struct {
	alive  bool
	tenure tenure
	// bytes are those of the receipt that it knows.
	bytes uint8
	// work is the id under which its program runs. It continues when the process ends.
	work int8
	// late says that a write may still arrive: toState, toSlot and to replace from.
	late            bool
	from, to        uint8
	toState, toSlot int8
}

// peerAction is a duty in a form that can be compared.
type peerAction struct {
	do          duty.Do
	state, slot int8
	share       int8
}

func share(id int8) receipt.Share { return receipt.Share{ID: int(id)} }

func (t tenure) shipped() duty.LockState {
	return duty.LockState{
		Known: t.known, Lock: duty.Lock{State: receipt.State(t.state), Share: share(t.slot)}, Renewed: t.renewed, Listed: t.listed,
		Others: duty.Others{Slot: t.taken}, Unbroken: t.unbroken, Working: share(t.working), Doubts: t.doubts, Late: t.late,
		Stopping: duty.Part{All: t.stopping}, CalledOff: duty.Part{All: t.off}, Lease: receipt.Nothing(),
	}
}

//nolint:gosec // ids below 3
func tenureOf(t duty.LockState) tenure {
	return tenure{
		known: t.Known, renewed: t.Renewed, listed: t.Listed, unbroken: t.Unbroken, stopping: t.Stopping.All, off: t.CalledOff.All, doubts: t.Doubts,
		taken: t.Others.Slot, late: t.Late, state: int8(t.Lock.State), slot: int8(t.Lock.Share.ID), working: int8(t.Working.ID),
	}
}

// note takes in what came of a step, by one of the shipped transitions.
func (p *peer) note(change func(duty.LockState) duty.LockState) {
	p.tenure = tenureOf(change(p.tenure.shipped()))
}

func (m *model) freshPeer(i int) peer {
	if m.central(i) {
		return peer{}
	}
	return peer{alive: true, tenure: peerThatStarts(noID), work: noID}
}

// peerThatStarts is the tenure of a process that finds out under which id an earlier process may have left work.
func peerThatStarts(left int8) tenure { return tenureOf(duty.Start(false, share(left))) }

// may returns all that the peer may do next, whatever is wanted of it.
func (m *model) may(t tenure) []action {
	if known, there := m.wishes[t]; there {
		return known
	}
	wishes := []duty.Desired{{Give: true, Propose: receipt.Nothing()}, {Propose: receipt.Nothing(), WaitAgain: true, Show: true}}
	for slot := range m.slots {
		wishes = append(wishes, duty.Desired{Propose: receipt.Share{ID: slot}})
	}
	var out []action
	for _, wish := range wishes {
		if a := (action{peer: peerStep(t, wish)}); !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	m.wishes[t] = out
	return out
}

//nolint:gosec // ids below 3
func peerStep(t tenure, wish duty.Desired) peerAction {
	d := duty.Step(t.shipped(), wish)
	return peerAction{do: d.Do, state: int8(d.Lock.State), slot: int8(d.Lock.Share.ID), share: int8(d.Share.ID)}
}

// who names the process of a pod.
func (m *model) who(i int) string {
	if m.agent(i) {
		return fmt.Sprintf("agent %d ", i)
	}
	return "the peer "
}

// nextOfPeer returns what the process of a pod does, and what happens to it.
func (m *model) nextOfPeer(w world, i int) (out []edge) {
	p := w.peers[i]
	add := func(what string, do func(to *world)) {
		to := w
		do(&to)
		out = append(out, edge{what: m.who(i) + what, to: to})
	}
	if p.late {
		add("gets its late write", func(to *world) {
			if to.pods[i].bytes == p.from {
				to.pods[i].bytes, to.pods[i].state, to.pods[i].slot = p.to, p.toState, p.toSlot
			}
			to.peers[i].forgetLate()
		})
	}
	if w.deletions > 0 {
		add("is replaced", func(to *world) {
			to.deletions--
			m.replace(to, i)
		})
	}
	if !p.alive {
		add("starts", func(to *world) { to.peers[i].alive = true })
		return out
	}
	if w.crashes > 0 {
		add("loses its process", func(to *world) {
			to.crashes--
			to.peers[i].alive, to.peers[i].tenure, to.peers[i].bytes = false, peerThatStarts(to.peers[i].work), 0
		})
	}
	if p.tenure.stopping {
		add("hears that its work has stopped", func(to *world) { m.stop(to, i) })
	}
	if p.tenure.off {
		add("hears that its work continues", func(to *world) {
			to.peers[i].note(func(t duty.LockState) duty.LockState { return t.Resumed(duty.Part{All: true}) })
		})
	}
	if p.tenure.doubts {
		add("has doubted long enough", func(to *world) { to.peers[i].note(duty.LockState.Sure) })
	}
	if p.tenure.known && p.bytes != w.pods[i].bytes {
		add("hears of another receipt on it", func(to *world) { to.peers[i].note(duty.LockState.Lost) })
	}
	for _, a := range m.may(p.tenure) {
		out = append(out, m.peerDoes(w, i, a.peer)...)
	}
	if m.told(&w, i) {
		add("hears the outcome of T3", func(to *world) { m.hear(to, i) })
	}
	return out
}

// told reports whether an agent waits for the outcome of T3, and the newest one is about the receipt that it has written. Its list may come before.
func (m *model) told(w *world, i int) bool {
	t, o := w.peers[i].tenure, w.pods[i]
	return m.agent(i) && t.known && t.renewed && !t.listed && (o.confirmed == w.peers[i].bytes || m.without == anyBytes && o.confirmed != 0)
}

func (*model) hear(w *world, i int) {
	w.peers[i].note(func(t duty.LockState) duty.LockState { return t.Saw(duty.Others{Slot: w.pods[i].refused}) })
}

// forgetLate says that no write may arrive any more.
func (p *peer) forgetLate() { p.late, p.from, p.to, p.toState, p.toSlot = false, 0, 0, 0, 0 }

func (*model) stop(w *world, i int) {
	w.peers[i].work = noID
	w.peers[i].note(func(t duty.LockState) duty.LockState { return t.Stopped(duty.Part{All: true}) })
}

// peerDoes returns what may come of an action.
func (m *model) peerDoes(w world, i int, a peerAction) []edge {
	to := w
	p, o := &to.peers[i], &to.pods[i]
	what := ""
	switch a.do {
	case duty.ReadPod:
		p.note(func(t duty.LockState) duty.LockState {
			return t.Read(duty.Lock{State: receipt.State(o.state), Share: share(o.slot)})
		})
		p.bytes = o.bytes
		what = "reads its pod"
	case duty.Write:
		return m.peerWrites(w, i, a)
	case duty.List:
		taken := false
		for j := range m.pods {
			q := w.pods[j]
			taken = taken || j != i && q.state == locks && q.slot == p.tenure.slot && !q.locksThere
		}
		p.note(func(t duty.LockState) duty.LockState { return t.Saw(duty.Others{Slot: taken}) })
		what = "lists the other receipts"
	case duty.Begin:
		p.work = a.share
		p.note(func(t duty.LockState) duty.LockState { return t.Begun(share(a.share)) })
		what = fmt.Sprintf("begins %d", a.share)
	case duty.Stop:
		p.note(func(t duty.LockState) duty.LockState { return t.Told(share(a.share)) })
		what = "tells its work to stop"
	case duty.CallOff:
		p.note(func(t duty.LockState) duty.LockState { return t.Recalled(duty.Part{All: true}) })
		what = "calls the stop off"
	case duty.Rest, duty.Secure, duty.Survey, duty.ReadOwner, duty.Judge, duty.Plan: // not about locks, or of strict mode
		return nil
	}
	return []edge{{what: m.who(i) + what, to: to}}
}

func (m *model) peerWrites(w world, i int, a peerAction) []edge {
	if w.wrote[i] >= m.writes {
		return nil
	}
	what := m.who(i) + "writes " + receiptText(a.state, a.slot)
	to := w
	p, o := &to.peers[i], &to.pods[i]
	if p.bytes != o.bytes {
		p.note(func(t duty.LockState) duty.LockState { return t.Failed(true) })
		return []edge{{what: what + " in vain", to: to}}
	}
	to.wrote[i]++
	o.state, o.slot, o.bytes, p.bytes = a.state, a.slot, to.wrote[i], to.wrote[i]
	p.note(func(t duty.LockState) duty.LockState {
		return t.Wrote(duty.Lock{State: receipt.State(a.state), Share: share(a.slot)})
	})
	out := []edge{{what: what, to: to}}
	if w.unanswered > 0 && !w.peers[i].late {
		to := w
		p := &to.peers[i]
		to.unanswered--
		to.wrote[i]++
		p.late, p.from, p.to, p.toState, p.toSlot = true, p.bytes, to.wrote[i], a.state, a.slot
		p.note(func(t duty.LockState) duty.LockState { return t.Failed(true) })
		out = append(out, edge{what: what + " and gets no answer", to: to})
	}
	return out
}

func receiptText(state, slot int8) string {
	switch receipt.State(state) {
	case receipt.Locks:
		return fmt.Sprintf("a lock of %d", slot)
	case receipt.Waits:
		return "that it waits"
	case receipt.GaveUp:
		return "that it gave up"
	case receipt.None, receipt.Unreadable:
	}
	return "nothing"
}
