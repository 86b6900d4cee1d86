package model

import (
	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// next returns all worlds that may come next.
func (m *model) next(w world) (out []edge) {
	for i := range m.pods {
		out = append(out, m.faults(w, i)...)
		p := w.pods[i]
		if !p.alive {
			to := w
			to.pods[i].alive, to.pods[i].tenure = true, fresh(p.strict, p.work)
			out = append(out, edge{pod: i, what: "starts", to: to})
			if w.hardened > 0 && !p.strict {
				to.hardened--
				to.pods[i].strict, to.pods[i].tenure = true, fresh(true, p.work)
				out = append(out, edge{pod: i, what: "starts, and is strict from now on", to: to, fault: true})
			}
			continue
		}
		out = append(out, m.stops(w, i)...)
		if p.tenure.doubts {
			to := w
			to.pods[i].tenure.note(duty.LockState.Sure)
			out = append(out, edge{pod: i, what: "has doubted long enough", to: to})
		}
		if p.tenure.known && p.receipt.bytes != p.tenure.receipt.bytes {
			to := w
			to.pods[i].tenure.note(duty.LockState.Lost)
			out = append(out, edge{pod: i, what: "hears of another receipt on it", to: to})
		}
		for _, a := range m.actions(p.tenure) {
			out = append(out, m.do(w, i, a)...)
		}
	}
	for id := range m.slots {
		out = append(out, m.expiry(w, id)...)
		out = append(out, m.letGoLate(w, id)...)
		out = append(out, strip(w, id)...)
	}
	return out
}

// stops returns how stops that are under way may go on. Each part of the work stops when it does.
func (m *model) stops(w world, i int) (out []edge) {
	ends := func(what string, s part, change func(duty.LockState, duty.Part) duty.LockState, works bool) {
		to := w
		p := &to.pods[i]
		if !works {
			p.work = p.work.minus(s)
		}
		p.tenure.note(func(t duty.LockState) duty.LockState { return change(t, s.shipped()) })
		out = append(out, edge{pod: i, what: what, about: lock{state: locks, share: share{parts: s.parts}}, to: to})
	}
	t := w.pods[i].tenure
	for k := range m.parts {
		one := part{parts: 1 << k}
		switch told := t.stopping.parts&one.parts != 0; {
		case !told && (!t.stopping.all || t.working.parts&one.parts == 0):
		case m.without == noParts && told:
			ends("hears that work has stopped on one of", one, func(t duty.LockState, _ duty.Part) duty.LockState { return t.Stopped(t.Stopping) }, false)
		default:
			ends("hears that work has stopped on", one, duty.LockState.Stopped, false)
		}
		if t.calledOff.parts&one.parts != 0 {
			ends("hears that work continues on", one, duty.LockState.Resumed, true)
		}
	}
	if t.stopping.all {
		ends("hears that all work has stopped", part{all: true}, duty.LockState.Stopped, false)
	}
	if t.calledOff.all {
		ends("hears that all work continues", part{all: true}, duty.LockState.Resumed, true)
	}
	return out
}

// expiry is the end of a Lease's time. The work under it has stopped by then: its holder's own clock stops it earlier.
func (m *model) expiry(w world, id int) []edge {
	l := w.leases[id]
	if l.holder == noHolder || l.expired {
		return nil
	}
	at := w.pods[l.holder%mostPods].work
	if l.holder >= mostPods {
		at = w.pods[l.holder%mostPods].ghost
	}
	if int(at.id) == id {
		return nil
	}
	to := w
	to.leases[id].expired = true
	return []edge{{pod: int(l.holder), what: "has not renewed its Lease", to: to}}
}

// letGoLate is the arrival of a write that lets a Lease go.
func (*model) letGoLate(w world, id int) []edge {
	l := w.leases[id]
	if !l.loose {
		return nil
	}
	to := w
	to.leases[id] = lease{holder: noHolder}
	if l.holder < mostPods {
		to.pods[l.holder].misled = true
	}
	return []edge{{pod: int(l.holder % mostPods), what: "gets its late write that lets its Lease go", to: to, fault: true}}
}

// strip has another client remove a Lease.
func strip(w world, id int) []edge {
	l := w.leases[id]
	if w.stripped == 0 || l.holder == noHolder || l.expired {
		return nil
	}
	to := w
	to.stripped--
	to.leases[id] = lease{holder: noHolder}
	if l.holder < mostPods {
		to.pods[l.holder].misled = true
	}
	return []edge{{pod: int(l.holder % mostPods), what: "loses its Lease to another client", to: to, fault: true}}
}

// faults returns what may happen to a pod that it does not do itself.
func (m *model) faults(w world, i int) (out []edge) {
	p := w.pods[i]
	add := func(what string, do func(to *world, q *pod)) {
		to := w
		do(&to, &to.pods[i])
		out = append(out, edge{pod: i, what: what, to: to, fault: true})
	}
	if p.late {
		add("gets its late write", func(_ *world, q *pod) {
			if q.receipt.bytes == p.from || m.without == noTest {
				q.receipt = p.to
			}
			q.late, q.from, q.to = false, 0, written{}
		})
	}
	if w.crashes > 0 && p.alive {
		add("loses its process", func(to *world, q *pod) {
			to.crashes--
			q.alive, q.tenure = false, fresh(q.strict, nothing())
			if !m.outlives {
				q.work = nothing()
			}
		})
	}
	if w.replaced > 0 {
		add("is replaced under its name", func(to *world, _ *pod) {
			to.replaced--
			to.replace(i, nothing())
		})
	}
	if w.forced > 0 && m.protects(w, i) && p.ghost == nothing() {
		add("is deleted by force", func(to *world, _ *pod) {
			to.forced--
			to.replace(i, p.work)
		})
	}
	if p.ghost != nothing() {
		add("was deleted, and its work stops in time", func(_ *world, q *pod) { q.ghost = nothing() })
	}
	if w.cut > 0 && p.alive && p.strict && p.tenure.lease != nothing() {
		add("has no contact, and its work stops in time", func(to *world, q *pod) {
			to.cut--
			q.work = nothing()
			if m.without != noRefence {
				q.tenure.note(duty.LockState.Fenced)
			}
		})
	}
	if w.overdue > 0 && p.strict && !p.overdue {
		add("outlives its grace period", func(to *world, q *pod) {
			to.overdue--
			q.overdue = true
		})
	}
	if w.removed > 0 && p.receipt.state != int8(receipt.None) {
		add("loses its receipt to another client", func(to *world, q *pod) {
			to.removed--
			q.wrote++
			q.receipt = written{lock: lock{share: nothing()}, bytes: q.wrote}
		})
	}
	return out
}

// protects reports whether strict mode covers that the pod is deleted by force: all pods are strict, and so is what the pod works on.
func (m *model) protects(w world, i int) bool {
	for _, p := range w.pods[:m.pods] {
		if !p.strict {
			return false
		}
	}
	return w.pods[i].receipt.strict || w.pods[i].work == nothing()
}

// replace makes another pod of the same name, while work of the one before may go on.
func (w *world) replace(i int, ghost share) {
	for id := range w.leases {
		if int(w.leases[id].holder) == i {
			w.leases[id].holder += mostPods
		}
	}
	w.pods[i] = newPod(w.pods[i].strict, w.pods[i].wrote)
	w.pods[i].ghost = ghost
}

// do returns what may come of an action.
func (m *model) do(w world, i int, a action) []edge {
	to := w
	p := &to.pods[i]
	switch a.do {
	case duty.ReadPod:
		p.read(m.without)
		return []edge{{pod: i, what: "reads its pod:", about: p.receipt.lock, to: to}}
	case duty.Secure:
		return m.secure(w, i, a.share)
	case duty.Write:
		return m.write(w, i, a.lock)
	case duty.List:
		var others duty.Others
		if m.without != noList {
			others = m.others(w, i)
		}
		p.tenure.note(func(t duty.LockState) duty.LockState { return t.Saw(others) })
		return []edge{{pod: i, what: "lists the other receipts (T3)", to: to}}
	case duty.Survey:
		return m.survey(to, i)
	case duty.Begin:
		if own := w.leases[max(0, a.share.id)]; p.strict && !p.misled && (int(own.holder) != i || own.expired) && m.without != noRefence && m.without != noLease {
			p.tenure.note(duty.LockState.Fenced) // its own clock says so
			p.work = nothing()
			return []edge{{pod: i, what: "finds its time over", to: to}}
		}
		p.work = a.share
		p.tenure.note(func(t duty.LockState) duty.LockState { return t.Begun(a.share.shipped()) })
		return []edge{{pod: i, what: "begins", about: lock{state: locks, share: p.work}, to: to}}
	case duty.Stop:
		p.tenure.note(func(t duty.LockState) duty.LockState { return t.Told(a.share.shipped()) })
		if m.without == fastGive {
			p.tenure.note(func(t duty.LockState) duty.LockState { return t.Stopped(t.Stopping) })
		}
		return []edge{{pod: i, what: "stops all but", about: lock{state: locks, share: a.share}, to: to}}
	case duty.CallOff:
		p.tenure.note(func(t duty.LockState) duty.LockState { return t.Recalled(a.part.shipped()) })
		return []edge{{pod: i, what: "calls a stop off", to: to}}
	case duty.Rest, duty.ReadOwner, duty.Judge, duty.Plan: // not about locks
	}
	return nil
}

// secure is a write of the own Lease.
func (m *model) secure(w world, i int, s share) []edge {
	to := w
	p := &to.pods[i]
	if s == nothing() {
		if id := p.tenure.lease.id; int(w.leases[id].holder) == i {
			to.leases[id] = lease{holder: noHolder}
		}
		p.misled = false
		p.tenure.note(func(t duty.LockState) duty.LockState { return t.HasLease(receipt.Nothing()) })
		out := []edge{{pod: i, what: "lets its Lease go", to: to}}
		if w.unanswered > 0 {
			out = append(out, m.loosen(w, i))
		}
		return out
	}
	p.misled = false
	l := w.leases[s.id]
	if l.holder != noHolder && int(l.holder) != i && !l.expired && m.without != noLease {
		p.tenure.note(duty.LockState.LeaseTaken)
		return []edge{{pod: i, what: "finds the Lease of another pod for", about: lock{state: locks, share: s}, to: to}}
	}
	to.leases[s.id] = lease{holder: int8(i), parts: s.parts} //nolint:gosec // an index below 3
	unheard := to
	p.tenure.note(func(t duty.LockState) duty.LockState { return t.HasLease(s.shipped()) })
	out := []edge{{pod: i, what: "has the Lease of", about: lock{state: locks, share: s}, to: to}}
	if w.unanswered > 0 {
		unheard.unanswered--
		unheard.pods[i].tenure.note(func(t duty.LockState) duty.LockState { return t.MayHaveLease(s.shipped()) })
		out = append(out, edge{pod: i, what: "has the Lease and gets no answer:", about: lock{state: locks, share: s}, to: unheard, fault: true})
	}
	return out
}

// loosen is a write that lets the own Lease go, and has no answer. It may arrive later.
func (m *model) loosen(to world, i int) edge {
	to.unanswered--
	p := &to.pods[i]
	if id := p.tenure.lease.id; int(to.leases[id].holder) == i {
		to.leases[id].loose = true
	}
	if m.without != noLoosening {
		p.tenure.note(func(t duty.LockState) duty.LockState { return t.MayHaveLease(receipt.Nothing()) })
	}
	return edge{pod: i, what: "lets its Lease go and gets no answer", to: to, fault: true}
}

// survey lists the Leases.
func (m *model) survey(to world, i int) []edge {
	p := &to.pods[i]
	mine := p.tenure.receipt.share
	var others duty.Others
	for id, l := range to.leases {
		if l.holder == noHolder || l.expired {
			continue
		}
		if id != int(mine.id) && m.without != noSurvey {
			others.Partitions = others.Partitions.Union(set(l.parts & mine.parts))
		}
	}
	if own := to.leases[mine.id]; int(own.holder) != i || own.expired {
		p.tenure.note(duty.LockState.Fenced)
		p.work = nothing()
		return []edge{{pod: i, what: "finds its time over", to: to}}
	}
	p.tenure.note(func(t duty.LockState) duty.LockState { return t.SawLeases(others) })
	return []edge{{pod: i, what: "lists the other Leases", to: to}}
}

// read is a read of the own pod.
func (p *pod) read(without step) {
	p.tenure.note(func(t duty.LockState) duty.LockState {
		t = t.Read(p.receipt.shipped())
		t.Renewed = t.Renewed || without == noRenewal && t.Lock.State == receipt.Locks
		if without == early && t.Lock.State == receipt.Locks {
			t.Lock.Held = duty.Held{Slot: true, Partitions: t.Lock.Share.Partitions}
		}
		return t
	})
	p.tenure.receipt = written{lock: p.tenure.receipt.lock, bytes: p.receipt.bytes, strict: p.receipt.strict}
}

// failed takes in that a write failed, and may arrive late.
func failed(t duty.LockState) duty.LockState { return t.Failed(true) }

// write returns the outcomes of a swap of the receipt.
func (m *model) write(w world, i int, l lock) []edge {
	p := w.pods[i]
	if p.wrote >= m.writes {
		return nil
	}
	r := written{lock: l, bytes: p.wrote + 1, strict: p.strict}
	if m.without == sameBytes && l == p.tenure.receipt.lock {
		r.bytes = p.tenure.receipt.bytes
	}
	if p.receipt.bytes != p.tenure.receipt.bytes && m.without != noTest {
		to := w
		to.pods[i].tenure.note(failed)
		return []edge{{pod: i, what: "fails to write", about: l, to: to}}
	}
	accepted := func(t duty.LockState) duty.LockState { return t.Wrote(l.shipped()) }
	to := w
	q := &to.pods[i]
	q.wrote++
	q.receipt = r
	q.tenure.note(accepted)
	q.tenure.receipt = r
	out := []edge{{pod: i, what: "writes (T2)", about: l, to: to}}
	if w.unanswered > 0 && !p.late {
		to := w
		to.unanswered--
		q := &to.pods[i]
		q.wrote++
		q.late, q.from, q.to = true, p.tenure.receipt.bytes, r
		if m.without == noRead {
			q.tenure.note(accepted)
			q.tenure.receipt = r
		} else {
			q.tenure.note(failed)
		}
		out = append(out, edge{pod: i, what: "gets no answer to the write of", about: l, to: to, fault: true})
	}
	return out
}

// others is what a list of the other receipts says of a pod's lock. A strict pod does not wait for strict ones that have outlived their grace period.
func (m *model) others(w world, i int) (o duty.Others) {
	mine := w.pods[i].tenure.receipt.shipped()
	for j, p := range w.pods {
		if both := w.pods[i].strict && (p.receipt.strict || m.without == noMark && p.strict); j == i || both && (p.overdue || m.without == noStrict) {
			continue
		}
		other := p.receipt.shipped()
		if m.without == noHeld {
			mine.Held, other.Held = duty.Held{}, duty.Held{}
		}
		o = o.And(other.Blocks(mine))
	}
	return o
}
