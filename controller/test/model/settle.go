package model

import (
	"fmt"

	"github.com/idalloc/idalloc/controller/internal/decision"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/duty"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// settled is what decides how a world comes to rest: what controllers know is old by then.
type settled struct {
	pods  [mostPods]object
	peers [mostPods]peer
}

// settles has everything go on without faults until nothing changes, with each map at the start. It returns what is wrong then: two run under one id, or
// a pod waits although an id is free. The plan's map is written as it is, one controller acts at a time, and sees everything.
func (m *model) settles(w world) string {
	for i := range m.pods {
		if p := &w.peers[i]; p.tenure.known && p.bytes != w.pods[i].bytes {
			p.note(duty.LockState.Lost)
		}
		w.peers[i].forgetLate()
	}
	key := settled{canonical(w.pods), w.peers}
	for i := range key.peers {
		key.peers[i].bytes = 0
	}
	if known, there := m.rests[key]; there {
		return known
	}
	problem := ""
	for count := 1; count <= m.slots && problem == ""; count++ {
		for slots := range m.maps(w.pods) {
			if problem = m.rest(w, slots, count); problem != "" {
				problem = fmt.Sprintf("then, with count %d, the map %v and no more faults, %s", count, slots, problem)
				break
			}
		}
	}
	m.rests[key] = problem
	return problem
}

func (m *model) rest(w world, slots assignment.Slots, count int) string {
	const most = 20
	state := assignment.State{Slots: slots}
	for range most {
		before, was := w, state.Slots.Encode()
		for i := range m.pods {
			if w.pods[i].term {
				m.replace(&w, i)
			}
		}
		m.pass(&w, &state, count)
		for i := range m.pods {
			if !m.central(i) {
				m.peerRests(&w, i, state, count)
			}
		}
		if w == before && state.Slots.Encode() == was {
			return m.wrong(&w, count)
		}
	}
	return fmt.Sprintf("it does not come to rest: %v", state.Slots)
}

// pass is a reconcile in which nothing else happens.
func (m *model) pass(w *world, state *assignment.State, count int) {
	decide := func(listed []decision.Lock) decision.Decision {
		return decision.Decide(m.world(w.pods, listed, *state, count))
	}
	d := decide(nil)
	if d.Plan.Next != nil {
		*state = *d.Plan.Next
		d = decide(nil)
	}
	m.carryOut(w, d)
	if d = decide(nil); !d.Confirm {
		return
	}
	m.carryOut(w, decide(m.list(w.pods, m.listed(w.pods, w.pods))))
}

// carryOut does what a decision says.
func (m *model) carryOut(w *world, d decision.Decision) {
	do := func(what do, name string, slot int, under string) {
		i := m.find(w.pods, name)
		w.wrote[i]++
		o := w.pods[i]
		if what == take {
			o.slot = int8(slot) //nolint:gosec // a slot below 3
		}
		m.apply(w, write{do: what, pod: uint8(i), generation: o.generation, test: o.bytes, bytes: w.wrote[i], slot: o.slot, there: under == there.String()}) //nolint:gosec // as above
	}
	for _, t := range d.Take {
		do(take, t.Pod, t.ID, t.Under)
	}
	for _, b := range d.Begin {
		if b.Gated {
			do(begin, b.Pod, b.ID, b.Under)
		} else {
			do(beginAgain, b.Pod, b.ID, b.Under)
		}
	}
	if m.without != noRetreat {
		for _, name := range d.Withdraw {
			do(withdraw, name, 0, "")
		}
	}
	for _, p := range d.Propose {
		if i := m.find(w.pods, p.Pod); p.Text != "" && m.without != noConfirm {
			w.pods[i].confirmed, w.pods[i].refused = w.pods[i].bytes, p.Next.Confirmed.Slot
		}
	}
	if m.without != noRemoval {
		for _, r := range d.Remove {
			w.pods[m.find(w.pods, r.Pod)].term = true
		}
	}
}

// peerRests has the process of a pod do what it does until it rests. That of an agent lists nothing: what it is told is enough.
func (m *model) peerRests(w *world, i int, state assignment.State, count int) {
	const most = 20
	wish := duty.Desired{Propose: receipt.Nothing(), WaitAgain: true, Show: true}
	if id, has := state.Slots.Of(m.name(i, w.pods[i])); has && id < count {
		wish = duty.Desired{Propose: receipt.Share{ID: id}, Show: true}
	}
	wish.Give = int(w.peers[i].tenure.slot) >= count
	w.peers[i].alive = true
	for range most {
		p := &w.peers[i]
		a := peerStep(p.tenure, wish)
		switch {
		case p.tenure.stopping:
			m.stop(w, i)
		case a.do == duty.Rest:
			return
		case a.do == duty.List && p.tenure.doubts && p.tenure.listed:
			p.note(duty.LockState.Sure)
		case a.do == duty.List && m.told(w, i):
			m.hear(w, i)
		case a.do == duty.List && m.agent(i):
			return
		default:
			w.wrote[i] = min(w.wrote[i], m.writes-1)
			edges := m.peerDoes(*w, i, a)
			*w = edges[0].to
			if o := &w.pods[i]; a.do == duty.Write && o.confirmed == o.bytes { // there are not that many bytes, so they come again
				o.confirmed, o.refused = 0, false
			}
			if a.do == duty.Write && a.state == waits {
				return // it tries again later
			}
		}
	}
}

// wrong says what is wrong with a world at rest.
func (m *model) wrong(w *world, count int) string {
	if m.two(w) {
		return "two run under one id for good"
	}
	held, above, waiting := 0, 0, 0
	for i := range m.pods {
		id := m.works(w, i)
		if !m.central(i) {
			id = w.peers[i].tenure.working // an earlier process may have left that
		}
		switch {
		case id != noID && int(id) < count:
			held++
		case id != noID:
			above++
		case w.pods[i].gated && !w.pods[i].foreign, !m.central(i):
			waiting++
		}
	}
	free := count - held
	if free > 0 && waiting > 0 {
		return fmt.Sprintf("%d pods wait although %d ids are free", waiting, free)
	}
	if free > 0 && above > 0 && m.deployment && m.pods <= count {
		return "a pod keeps an id above the count although a lower one is free"
	}
	return ""
}
