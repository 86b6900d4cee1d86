package model

import (
	"fmt"
	"slices"

	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// tenure is a duty.Tenure without partitions and strict mode, in a form that can be the key of a map.
type tenure struct {
	known, renewed, listed, unbroken, stopping, off, doubts, taken, late bool
	state, slot, working                                                 int8
}

// peer is the process of a pod that takes for itself.
type peer struct {
	alive  bool
	tenure tenure
	// bytes are those of the receipt that it knows.
	bytes uint8
	// work is the id under which its program runs. It goes on when the process ends.
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

func (t tenure) shipped() duty.Tenure {
	return duty.Tenure{
		Known: t.known, Lock: duty.Lock{State: receipt.State(t.state), Share: share(t.slot)}, Renewed: t.renewed, Listed: t.listed,
		Others: duty.Others{Slot: t.taken}, Unbroken: t.unbroken, Working: share(t.working), Doubts: t.doubts, Late: t.late,
		Stopping: duty.Part{All: t.stopping}, CalledOff: duty.Part{All: t.off}, Lease: receipt.Nothing(),
	}
}

//nolint:gosec // ids below 3
func tenureOf(t duty.Tenure) tenure {
	return tenure{
		known: t.Known, renewed: t.Renewed, listed: t.Listed, unbroken: t.Unbroken, stopping: t.Stopping.All, off: t.CalledOff.All, doubts: t.Doubts,
		taken: t.Others.Slot, late: t.Late, state: int8(t.Lock.State), slot: int8(t.Lock.Share.ID), working: int8(t.Working.ID),
	}
}

// note takes in what came of a step, by one of the shipped transitions.
func (p *peer) note(change func(duty.Tenure) duty.Tenure) {
	p.tenure = tenureOf(change(p.tenure.shipped()))
}

func (m *model) freshPeer() peer {
	return peer{alive: m.peer, tenure: peerThatStarts(noID), work: noID}
}

// peerThatStarts is the tenure of a process that finds out under which id an earlier process may have left work.
func peerThatStarts(left int8) tenure { return tenureOf(duty.Start(false, share(left))) }

// may returns all that the peer may do next, whatever is wanted of it.
func (m *model) may(t tenure) []action {
	if known, there := m.wishes[t]; there {
		return known
	}
	wishes := []duty.Wish{{Give: true, Propose: receipt.Nothing()}, {Propose: receipt.Nothing(), WaitAgain: true, Show: true}}
	for slot := range m.slots {
		wishes = append(wishes, duty.Wish{Propose: receipt.Share{ID: slot}})
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
func peerStep(t tenure, wish duty.Wish) peerAction {
	d := duty.Step(t.shipped(), wish)
	return peerAction{do: d.Do, state: int8(d.Lock.State), slot: int8(d.Lock.Share.ID), share: int8(d.Share.ID)}
}

// nextOfPeer returns what the peer does, and what happens to it.
func (m *model) nextOfPeer(w world) (out []edge) {
	i := m.pods - 1
	p := w.peer
	add := func(what string, do func(to *world)) {
		to := w
		do(&to)
		out = append(out, edge{what: "the peer " + what, to: to})
	}
	if p.late {
		add("gets its late write", func(to *world) {
			if to.pods[i].bytes == p.from {
				to.pods[i].bytes, to.pods[i].state, to.pods[i].slot = p.to, p.toState, p.toSlot
			}
			to.peer.late, to.peer.from, to.peer.to, to.peer.toState, to.peer.toSlot = false, 0, 0, 0, 0
		})
	}
	if w.deletions > 0 {
		add("is replaced", func(to *world) {
			to.deletions--
			m.replace(to, i)
		})
	}
	if !p.alive {
		add("starts", func(to *world) { to.peer.alive = true })
		return out
	}
	if w.crashes > 0 {
		add("loses its process", func(to *world) {
			to.crashes--
			to.peer.alive, to.peer.tenure, to.peer.bytes = false, peerThatStarts(to.peer.work), 0
		})
	}
	if p.tenure.stopping {
		add("hears that its work has stopped", func(to *world) { m.stop(to) })
	}
	if p.tenure.off {
		add("hears that its work goes on", func(to *world) {
			to.peer.note(func(t duty.Tenure) duty.Tenure { return t.Resumed(duty.Part{All: true}) })
		})
	}
	if p.tenure.doubts {
		add("has doubted long enough", func(to *world) { to.peer.note(duty.Tenure.Sure) })
	}
	if p.tenure.known && p.bytes != w.pods[i].bytes {
		add("hears of another receipt on it", func(to *world) { to.peer.note(duty.Tenure.Lost) })
	}
	for _, a := range m.may(p.tenure) {
		out = append(out, m.peerDoes(w, a.peer)...)
	}
	return out
}

func (*model) stop(w *world) {
	w.peer.work = noID
	w.peer.note(func(t duty.Tenure) duty.Tenure { return t.Stopped(duty.Part{All: true}) })
}

// peerDoes returns what may come of an action.
func (m *model) peerDoes(w world, a peerAction) []edge {
	i := m.pods - 1
	to := w
	p, o := &to.peer, &to.pods[i]
	what := ""
	switch a.do {
	case duty.ReadPod:
		p.note(func(t duty.Tenure) duty.Tenure {
			return t.Read(duty.Lock{State: receipt.State(o.state), Share: share(o.slot)})
		})
		p.bytes = o.bytes
		what = "reads its pod"
	case duty.Write:
		return m.peerWrites(w, a)
	case duty.List:
		taken := false
		for j := range m.pods {
			q := w.pods[j]
			taken = taken || j != i && q.state == locks && q.slot == p.tenure.slot && !q.locksThere
		}
		p.note(func(t duty.Tenure) duty.Tenure { return t.Saw(duty.Others{Slot: taken}) })
		what = "lists the other receipts"
	case duty.Begin:
		p.work = a.share
		p.note(func(t duty.Tenure) duty.Tenure { return t.Begun(share(a.share)) })
		what = fmt.Sprintf("begins %d", a.share)
	case duty.Stop:
		p.note(func(t duty.Tenure) duty.Tenure { return t.Told(share(a.share)) })
		what = "tells its work to stop"
	case duty.CallOff:
		p.note(func(t duty.Tenure) duty.Tenure { return t.Recalled(duty.Part{All: true}) })
		what = "calls the stop off"
	case duty.Rest, duty.Secure, duty.Survey, duty.ReadOwner, duty.Judge, duty.Plan: // not about locks, or of strict mode
		return nil
	}
	return []edge{{what: "the peer " + what, to: to}}
}

func (m *model) peerWrites(w world, a peerAction) []edge {
	i := m.pods - 1
	if w.wrote[i] >= m.writes {
		return nil
	}
	what := "the peer writes " + receiptText(a.state, a.slot)
	to := w
	p, o := &to.peer, &to.pods[i]
	if p.bytes != o.bytes {
		p.note(func(t duty.Tenure) duty.Tenure { return t.Failed(true) })
		return []edge{{what: what + " in vain", to: to}}
	}
	to.wrote[i]++
	o.state, o.slot, o.bytes, p.bytes = a.state, a.slot, to.wrote[i], to.wrote[i]
	p.note(func(t duty.Tenure) duty.Tenure {
		return t.Wrote(duty.Lock{State: receipt.State(a.state), Share: share(a.slot)})
	})
	out := []edge{{what: what, to: to}}
	if w.unanswered > 0 && !w.peer.late {
		to := w
		p := &to.peer
		to.unanswered--
		to.wrote[i]++
		p.late, p.from, p.to, p.toState, p.toSlot = true, p.bytes, to.wrote[i], a.state, a.slot
		p.note(func(t duty.Tenure) duty.Tenure { return t.Failed(true) })
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
