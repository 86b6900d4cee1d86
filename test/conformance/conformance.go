package conformance

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Do is a kind of step.
type Do string

// The steps, as test/proof names them.
const (
	T2       Do = "T2" // a process sends a receipt that locks something
	Give     Do = "Give"
	Arrives  Do = "arrives" // the API server accepts a receipt
	T3       Do = "T3"
	Work     Do = "work" // work begins, or goes on under a new process
	Stop     Do = "stop"
	Restart  Do = "Restart"
	Foreign  Do = "foreign" // another writer changes a receipt
	End      Do = "end"     // the pod object vanishes, or says that the pod ended
	Locks    Do = "T2-by-controller"
	Withdraw Do = "Withdraw"
	Begin    Do = "Begin"
	// Container is the start of a container of a gated pod.
	Container Do = "container"
	// Publish writes the id of a pod that has begun again. ForeignID is another writer's change of it.
	Publish   Do = "Publish"
	ForeignID Do = "foreign-id"
)

// Receipt is a write of a receipt, and the receipt that it leaves.
type Receipt struct {
	// ID tells it from all others: its bytes.
	ID string
	// Pod is the UID of its pod. Tests is the receipt that the write replaces.
	Pod, Tests string
	// Locks and Notes are slots and partitions.
	Locks, Notes []string
	Begun        bool
}

// Step is one step of a history.
type Step struct {
	Do Do
	// Pod is the UID of the pod.
	Pod string
	// Receipt is what is sent, what arrives, or what another writer leaves. Stands is what stands after Arrives.
	Receipt, Stands Receipt
	// Thing is the slot or the partition.
	Thing string
	// Showed is the pod's receipt that T3 showed, for Work and Begin.
	Showed string
	// IDs are what the pod's annotations say after ForeignID.
	IDs []string
}

// ErrRefused is the error for a step that the protocol does not allow. The error says which condition is broken.
var ErrRefused = errors.New("the protocol does not allow this step")

// Checker follows a history. The zero Checker is ready for use.
type Checker struct {
	pods        map[string]*pod
	stood, sent map[string]bool
	// known are all receipts, sent or not.
	known           map[string]Receipt
	shown, unbroken map[lock]bool
}

// lock is a receipt and a thing that it locks.
type lock struct{ receipt, thing string }

type pod struct {
	receipt     Receipt
	last        map[string]bool // what the process sent last
	works, ids  map[string]bool
	gated, gone bool
}

// need is a condition of a step.
type need struct {
	name string
	ok   bool
}

// Add says that a pod was created, and which receipt it has then: one that locks nothing.
func (c *Checker) Add(uid, receipt string, gated bool) {
	if c.pods == nil {
		*c = Checker{
			pods: map[string]*pod{}, stood: map[string]bool{}, sent: map[string]bool{}, known: map[string]Receipt{}, shown: map[lock]bool{}, unbroken: map[lock]bool{},
		}
	}
	c.pods[uid] = &pod{receipt: Receipt{ID: receipt, Pod: uid}, last: map[string]bool{}, works: map[string]bool{}, ids: map[string]bool{}, gated: gated}
	c.stood[receipt] = true
}

// Take takes in a step. It returns ErrRefused with the condition that the step breaks. It changes nothing then.
func (c *Checker) Take(s Step) error {
	p := c.pods[s.Pod]
	if p == nil {
		return fmt.Errorf("%s: there is no pod %q: Add it first", s.Do, s.Pod)
	}
	for _, n := range c.needs(s, p) {
		if !n.ok {
			return fmt.Errorf("%s of pod %s: %w: %s", s.Do, s.Pod, ErrRefused, n.name)
		}
	}
	c.do(s, p)
	return nil
}

// Two returns the things on which two pods are at work. There are none as long as no step was refused.
func (c *Checker) Two() (things []string) {
	count := map[string]int{}
	for _, p := range c.pods {
		for x := range p.works {
			if count[x]++; count[x] == 2 {
				things = append(things, x)
			}
		}
	}
	slices.Sort(things)
	return things
}

func (c *Checker) needs(s Step, p *pod) []need {
	r, x := s.Receipt, s.Thing
	alive := need{"a pod", !p.gone}
	write := need{"a write", !p.gone && r.Pod == s.Pod && c.isNew(r.ID) && c.stood[r.Tests]}
	process := need{"one writer: a process only writes for pods that are not gated", !p.gated}
	stays := need{"its work stays locked", covers(r.Locks, p.works)}
	noted := need{"it notes what it holds", c.noted(r, p)}
	controller := need{"one writer: a controller only writes for gated pods", p.gated && len(r.Notes) == 0}
	begun := need{"a begun pod is never withdrawn", !c.known[r.Tests].Begun}
	switch s.Do {
	case T2:
		return []need{process, write, stays, noted, {"it locks", len(r.Locks) > 0}}
	case Give:
		return []need{process, write, stays, noted, {"it locks no more", subset(r.Locks, c.known[r.Tests].Locks)}}
	case Locks, Withdraw:
		return []need{controller, write, begun, {"it begins nothing", !r.Begun}}
	case Begin:
		all := !slices.ContainsFunc(r.Locks, func(x string) bool { return !c.shown[lock{s.Showed, x}] })
		return []need{controller, write, begun, {"it begins", r.Begun}, {"it tests the receipt that T3 showed", s.Showed == r.Tests}, {"T3 showed no other lock", all}}
	case Arrives:
		return []need{
			{"a write", c.sent[r.ID] && r.Pod == s.Pod && !p.gone},
			{"it tests the receipt that it replaces", p.receipt.ID == r.Tests}, {"it writes what was never there before", s.Stands.ID == r.ID},
		}
	case T3:
		return []need{
			alive, {"it shows the pod's own receipt", slices.Contains(p.receipt.Locks, x)},
			{"it shows the locks of all live pods", !c.othersLock(s.Pod, x)},
		}
	case Work:
		noted := p.receipt.ID == s.Showed && slices.Contains(p.receipt.Notes, x)
		return []need{
			process, alive, {"its last write has its answer", p.last[p.receipt.ID]},
			{"T3 showed no other lock, or it is noted", noted || c.shown[lock{s.Showed, x}]}, {"the lock is unbroken", noted || c.unbroken[lock{s.Showed, x}]},
		}
	case Foreign:
		same := r.Begun == p.receipt.Begun && (!r.Begun || subset(r.Locks, p.receipt.Locks) && subset(p.receipt.Locks, r.Locks))
		return []need{
			alive, {"A3: the work stays locked, and it notes no more", covers(r.Locks, p.works) && subset(r.Notes, p.receipt.Notes) && subset(r.Notes, r.Locks)},
			{"A3: what has begun stays, and begins by Begin alone", !p.gated || same}, {"a write that replaces it tests the resourceVersion", c.isNew(r.ID)},
		}
	case End:
		return []need{{"A2: after its work", len(p.works) == 0}}
	case Container:
		return []need{alive, {"it reads what Begin wrote", p.gated && p.ids[x]}}
	case Publish:
		return []need{alive, {"it has begun", p.receipt.Begun}}
	case ForeignID:
		return []need{{"A3: an id that is not the pod's", subset(s.IDs, slices.Collect(maps.Keys(p.ids)))}}
	case Stop, Restart:
		return nil
	}
	return []need{{"a known step", false}}
}

func (c *Checker) do(s Step, p *pod) {
	switch s.Do {
	case T2, Give:
		c.send(s.Receipt)
		p.last = map[string]bool{s.Receipt.ID: true}
	case Locks, Withdraw, Begin:
		c.send(s.Receipt)
	case Arrives:
		if p.last[s.Receipt.ID] {
			p.last[s.Stands.ID] = true
		}
		if c.stands(s.Stands, p); s.Receipt.Begun {
			p.ids = set(s.Receipt.Locks)
		}
	case Foreign:
		c.stands(s.Receipt, p)
	case T3:
		c.shown[lock{p.receipt.ID, s.Thing}] = true
	case Work, Container:
		p.works[s.Thing] = true
	case Stop:
		delete(p.works, s.Thing)
	case Restart:
		clear(p.last)
	case End:
		p.gone = true
	case Publish:
		p.ids = set(p.receipt.Locks)
	case ForeignID:
		p.ids = set(s.IDs)
	}
}

// stands takes in what stands on the pod from now on.
func (c *Checker) stands(r Receipt, p *pod) {
	for k := range c.unbroken {
		if c.known[k.receipt].Pod == r.Pod && !slices.Contains(r.Locks, k.thing) {
			delete(c.unbroken, k)
		}
	}
	for _, x := range r.Locks {
		c.unbroken[lock{r.ID, x}] = true
	}
	p.receipt, c.stood[r.ID], c.known[r.ID] = r, true, r
}

func (c *Checker) send(r Receipt) { c.sent[r.ID], c.known[r.ID] = true, r }

// isNew reports whether no write and no pod had this receipt before.
func (c *Checker) isNew(id string) bool {
	return !c.sent[id] && !c.stood[id]
}

// noted reports whether the pod may note that: it works on it, has noted it before, or T3 has shown no other lock of it.
func (c *Checker) noted(r Receipt, p *pod) bool {
	for _, x := range r.Notes {
		confirmed := false
		for k := range c.unbroken {
			confirmed = confirmed || k.thing == x && c.shown[k] && c.known[k.receipt].Pod == r.Pod
		}
		if !slices.Contains(r.Locks, x) || !confirmed && !p.works[x] && !slices.Contains(c.known[r.Tests].Notes, x) {
			return false
		}
	}
	return true
}

func (c *Checker) othersLock(uid, x string) bool {
	for other, q := range c.pods {
		if other != uid && !q.gone && slices.Contains(q.receipt.Locks, x) {
			return true
		}
	}
	return false
}

func set(list []string) map[string]bool {
	out := map[string]bool{}
	for _, x := range list {
		out[x] = true
	}
	return out
}

func covers(list []string, all map[string]bool) bool {
	return subset(slices.Collect(maps.Keys(all)), list)
}

func subset(some, of []string) bool {
	return !slices.ContainsFunc(some, func(x string) bool { return !slices.Contains(of, x) })
}
