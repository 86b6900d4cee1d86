package model

import (
	"fmt"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

const (
	mostPods        = 3
	mostControllers = 2
	noID            = int8(receipt.NoID)
	locks           = int8(receipt.Locks)
	waits           = int8(receipt.Waits)
)

// step is one of the protocol that a model may leave out.
type step string

const (
	whole     step = ""
	noList    step = "T3: the others' receipts are not listed"
	fromCache step = "T3: the controller's own cache stands for the list"
	sameBytes step = "new bytes: Begin leaves the bytes as they are"
	noTest    step = "the test: Begin does not test the bytes that T3 showed"
	anyBytes  step = "the bytes: an agent takes the confirmation of one receipt for that of another"
	unlisted  step = "T3 for agents: their locks are confirmed without a list"
	noSwap    step = "the swap: T2 and withdrawals do not test the bytes that they replace"
	forgets   step = "begun is begun: a pod that has begun is withdrawn"
	byGate    step = "the receipt says what comes next: a gate that may be old says whether the pod has begun"
)

// These leave pods waiting, or two at work for good.
const (
	noRetreat step = "withdrawals: a lock that another pod has, too, stays"
	noConfirm step = "confirmations: agents are not told of T3"
	noRemoval step = "removals: a pod that runs under another one's id stays"
)

// budget bounds a model.
type budget struct {
	pods, slots, controllers int
	// peer says that the last pod takes for itself. agents is how many pods before it do so by what controllers propose to them.
	peer   bool
	agents int
	// adopted says that the first pod locks another owner's id 0. Its program may begin under that at any time, and this owner may adopt it.
	adopted bool
	// copied says that each pod is made with an id in its annotations, because those of another pod were copied.
	copied bool
	// deployment says that the owner is a Deployment: the controller removes pods above the count.
	deployment bool
	// sameNames says that a pod's successor has its name, as in a StatefulSet.
	sameNames bool
	// wild has controllers propose every slot to every gated pod, whatever their plan says.
	wild bool
	// writes is how many receipts are written in each pod's place at most.
	writes uint8
	// crashes, unanswered, deletions, opened and removed are how often that happens: a controller or the process of a peer or an agent ends, a write gets no answer, a
	// pod is deleted, a gate is removed by hand, and so is a receipt.
	crashes, unanswered, deletions, opened, removed uint8
	without                                         step
}

// object is what the API server has of a pod, and what a view shows of it.
type object struct {
	// generation counts the pods that had this place: each has a UID of its own.
	generation uint8
	// bytes stand for the receipt's text. No two writes in one place have the same. 0 is no receipt.
	bytes       uint8
	state, slot int8
	begun       bool
	// id is the annotation that the container reads.
	id          int8
	gated, term bool
	// foreign says that the pod is another owner's. locksThere and beganThere say the same of its receipt, and of its identity.
	foreign, locksThere, beganThere bool
	// confirmed are the bytes of which an agent was told the outcome of T3, and refused says that another pod locks the slot, too.
	confirmed uint8
	refused   bool
}

// do is what a controller does to a pod.
type do uint8

const (
	nothing do = iota
	take
	withdraw
	begin
	// beginAgain is a Begin for a pod that runs: there is no gate to take away.
	beginAgain
	// confirm tells an agent that T3 has shown no other lock of its slot, and refuse that it has.
	confirm
	refuse
	remove
)

// write is a request on a pod. It tests the UID and, but for a step that is left out, the bytes.
type write struct {
	do                      do
	pod                     uint8
	generation, test, bytes uint8
	slot                    int8
	// there says that the lock is of the other owner's slot.
	there bool
	// known and denied are what an agent was told before.
	known  uint8
	denied bool
}

// controller is what one controller knows. view is what a reconcile goes by: what a cache or a list has shown, and answers to writes. cache is the same
// without these answers, because the next reconcile may begin with a cache that lacks them. What is to be done about a pod after T3 is to be done on the
// bytes that the view has.
type controller struct {
	cache, view [mostPods]object
	todo        [mostPods]do
	late        write // may still arrive
}

type world struct {
	pods        [mostPods]object
	controllers [mostControllers]controller
	peers       [mostPods]peer
	// wrote counts the receipts in each place, and is the bytes of the newest one.
	wrote                                           [mostPods]uint8
	crashes, unanswered, deletions, opened, removed uint8
}

// edge is one step from a world to the next.
type edge struct {
	what string
	to   world
	// knowing says that a controller has a program begin under an id although it sees that another one runs under it, and that one does.
	knowing bool
}

func (m *model) first() world {
	w := world{crashes: m.crashes, unanswered: m.unanswered, deletions: m.deletions, opened: m.opened, removed: m.removed}
	for i := range m.pods {
		w.pods[i] = m.newPod(i, 0)
		w.peers[i] = m.freshPeer(i)
	}
	if m.adopted {
		w.pods[0] = object{state: locks, bytes: 1, id: noID, gated: true, foreign: true, locksThere: true}
		w.wrote[0] = 1
	}
	for c := range m.controllers {
		w.controllers[c] = controller{cache: w.pods, view: w.pods}
	}
	return w
}

func (m *model) newPod(i int, generation uint8) object {
	o := object{generation: generation, slot: noID, id: noID, gated: m.central(i)}
	if m.copied {
		o.id = 0
	}
	return o
}

// central reports whether controllers take for the pod, and agent whether its process takes what they propose to it.
func (m *model) central(i int) bool { return i < m.pods-m.agents-m.peersAt() }

func (m *model) agent(i int) bool { return !m.central(i) && i < m.pods-m.peersAt() }

func (m *model) peersAt() int {
	if m.peer {
		return 1
	}
	return 0
}

func (m *model) name(i int, o object) string {
	if m.sameNames || o.generation == 0 {
		return fmt.Sprintf("pod-%d", i)
	}
	return fmt.Sprintf("pod-%d-%d", i, o.generation)
}

// replace deletes the object, and another pod comes.
func (m *model) replace(w *world, i int) {
	w.pods[i] = m.newPod(i, w.pods[i].generation+1)
	w.peers[i] = m.freshPeer(i)
}

// works returns the id under which the pod's program runs, or noID. A gated pod's runs from the moment that its gate is gone until the object is
// gone. Another owner's ids are others.
func (m *model) works(w *world, i int) int8 {
	o := w.pods[i]
	switch {
	case !m.central(i):
		return w.peers[i].work
	case o.gated || o.foreign:
		return noID
	}
	return o.id
}

// two reports whether two programs run under one id.
func (m *model) two(w *world) bool {
	for i := range m.pods {
		id := m.works(w, i)
		for j := range i {
			if id != noID && m.works(w, j) == id {
				return true
			}
		}
	}
	return false
}

// apply carries a write out, if what it tests is so. answer reports whether it was.
func (m *model) apply(w *world, q write) (answer bool) {
	o := &w.pods[q.pod]
	if o.generation != q.generation {
		return false
	}
	switch q.do {
	case take, withdraw: // store.Take
		if o.bytes != q.test && m.without != noSwap {
			return false
		}
		o.state, o.slot, o.bytes, o.begun, o.locksThere = waits, noID, q.bytes, false, q.there
		if q.do == take {
			o.state, o.slot = locks, q.slot
		}
	case begin, beginAgain: // store.Begin
		if o.term || o.bytes != q.test && m.without != noTest || o.state != locks || o.slot != q.slot || q.do == begin && !o.gated {
			return false
		}
		o.id, o.begun, o.beganThere = q.slot, true, o.locksThere
		if m.without != sameBytes {
			o.bytes = q.bytes
		}
		if q.do == begin {
			o.gated = false
		}
	case confirm, refuse: // store.SetProposal
		if o.bytes != q.test || o.confirmed != q.known || o.refused != q.denied {
			return false
		}
		o.confirmed, o.refused = q.test, q.do == refuse
	case nothing, remove:
		return false
	}
	return true
}

// heard has a view take over the answer to a write, as the reconciler does: it says nothing of a deletion, and of the gate only if there is an id that
// the view lacks.
func (m *model) heard(o *object, now object) {
	gated, term := o.gated && (o.id == now.id || m.without == byGate), o.term
	*o = now
	o.gated, o.term = gated, term
}
