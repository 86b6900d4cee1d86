package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Do is a kind of step.
type Do string

// Steps, with the names of test/proof.
const (
	T2       Do = "T2" // a process sends a receipt that locks something
	Give     Do = "Give"
	Arrives  Do = "arrives" // the API server accepts a receipt
	T3       Do = "T3"
	Work     Do = "work" // work begins, or continues under a new process
	Stop     Do = "stop"
	Restart  Do = "Restart"
	Foreign  Do = "foreign" // another writer changes a receipt
	End      Do = "end"     // the pod's object vanishes, or reports that the pod ended
	Locks    Do = "T2-by-controller"
	Withdraw Do = "Withdraw"
	Begin    Do = "Begin"
	// Container is the start of a container of a gated pod.
	Container Do = "container"
	// Publish writes the id of a pod that has begun again. ForeignID is another writer's change of that id.
	Publish   Do = "Publish"
	ForeignID Do = "foreign-id"
	// Secure writes a Lease. ShowsLeases is the part of a strict pod's T3 that lists Leases.
	Secure      Do = "Secure"
	ShowsLeases Do = "T3-of-Leases"
)

// Receipt is one version of a receipt, and the write that stores it.
type Receipt struct {
	// ID distinguishes it from all other receipts. It stands for its bytes.
	ID string
	// Pod is the UID of its pod. Tests is the receipt that the write replaces; with any other one the write fails.
	Pod, Tests string
	// Locks and Notes name slots and partitions. A name that ends with a star means every partition of an owner.
	Locks, Notes []string
	Begun        bool
	// Strict is true if a Lease locks the same.
	Strict bool
}

// Step is one step of a history.
type Step struct {
	Do Do
	// Pod is the UID of the pod. It is empty for a Lease without a holder.
	Pod string
	// Receipt is sent, arrives, or is left by another writer. Stands is the receipt on the pod after Arrives.
	Receipt, Stands Receipt
	// Thing is the slot or the partition.
	Thing string
	// Showed is the pod's receipt that T3 showed, for Begin. If it is empty for Work or T3: Work accepts any receipt, T3 means the one that stands.
	Showed string
	// IDs are the ids in the pod's annotations after ForeignID.
	IDs []string
	// Version is the resourceVersion of the arriving write, or of the list of T3.
	Version int64
	// Token belongs to Work and Publish. 0: it is not checked.
	Token int64
	// Former: for Arrives, the process sent it before the last Restart; for T3, it shows an earlier moment.
	Former bool
	// Lease is the name of a Lease. It expires at Until. At is the time of the step.
	Lease     string
	At, Until time.Duration
}

// ErrRefused means that the protocol does not allow a step. The wrapping error names the broken condition.
var ErrRefused = errors.New("the protocol does not allow this step")

// Rule returns the condition that a step broke, with its name in the proof.
func Rule(err error) string {
	_, rule, _ := strings.Cut(err.Error(), ErrRefused.Error()+": ")
	rule, _, _ = strings.Cut(rule, ", pods ")
	return rule
}

// Checker follows a history. The zero Checker is ready to use.
type Checker struct {
	pods map[string]*pod
	// lock and work hold, for each thing, the pods that lock it and the pods that work on it.
	lock, work map[string][]*pod
	leases     map[string]lease
	tokens     map[string]told
}

// told is the highest token of a thing, and the UID of the pod that had it.
type told struct {
	token int64
	pod   string
}

// shows is a receipt and a thing that it locks.
type shows struct{ receipt, thing string }

type pod struct {
	uid     string
	receipt Receipt
	// known holds all receipts of the pod, sent or not. stood holds those that stood on the pod, sent those that were sent.
	known           map[string]*Receipt
	stood, sent     map[string]bool
	last            map[string]bool // what the process sent last
	shown, unbroken map[shows]bool
	// leased holds the things for which a T3 showed no other Lease.
	leased     map[string]bool
	spans      map[string]span
	works, ids map[string]bool
	// had holds the token of the pod's last work on each thing.
	had         map[string]int64
	gated, gone bool
	// exposed: an assumption was broken for the pod, and it has written nothing since. damaged: an assumption was broken for it at some time.
	exposed, damaged bool
}

// span belongs to one lock of a thing: the version since which the pod has locked it, the newest version that T3 showed, and the token used under that lock.
type span struct{ since, until, token int64 }

// need is a condition of a step.
type need struct {
	name string
	ok   bool
}

// Add adds a new pod. receipt names its first receipt, which locks nothing.
func (c *Checker) Add(uid, receipt string, gated bool) {
	if c.pods == nil {
		*c = Checker{pods: map[string]*pod{}, lock: map[string][]*pod{}, work: map[string][]*pod{}, leases: map[string]lease{}, tokens: map[string]told{}}
	}
	c.pods[uid] = &pod{
		uid: uid, receipt: Receipt{ID: receipt, Pod: uid}, gated: gated, known: map[string]*Receipt{}, stood: map[string]bool{receipt: true}, sent: map[string]bool{},
		last: map[string]bool{}, shown: map[shows]bool{}, unbroken: map[shows]bool{}, spans: map[string]span{}, works: map[string]bool{}, had: map[string]int64{},
	}
}

// Take carries out a step if the protocol allows it. Otherwise it changes nothing and returns ErrRefused with the broken condition.
func (c *Checker) Take(s Step) error {
	p := c.pods[s.Pod]
	if p == nil && (s.Do != Secure || s.Pod != "") {
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

func (c *Checker) needs(s Step, p *pod) []need {
	if s.Do == Secure {
		return c.needsOfLease(s, p)
	}
	r, x := s.Receipt, s.Thing
	alive := need{"a pod", !p.gone}
	process := need{"one writer: a process only writes for pods that are not gated", !p.gated}
	switch s.Do {
	case T2, Give, Locks, Withdraw, Begin:
		return c.needsOfSend(s, p)
	case Arrives:
		return []need{
			{"a write", p.sent[r.ID] && r.Pod == s.Pod && !p.gone},
			{"it tests the receipt that it replaces", p.receipt.ID == r.Tests}, {"it writes what was never there before", s.Stands.ID == r.ID},
		}
	case T3:
		return []need{
			alive, {"it shows the pod's own receipt", s.Showed != "" && p.unbroken[shows{s.Showed, x}] || has(p.receipt.Locks, x)},
			{"it shows the locks of all live pods", s.Former || !c.othersLock(p, x)},
		}
	case ShowsLeases:
		return []need{alive, {"it shows the pod's own Lease", c.hasLease(p, x, s.At)}, {"it shows all Leases that have not expired", !c.othersLease(p, x, s.At)}}
	case Work:
		return c.needsOfWork(s, p, []need{process, alive})
	case Foreign:
		same := r.Begun == p.receipt.Begun && (!r.Begun || subset(r.Locks, p.receipt.Locks) && subset(p.receipt.Locks, r.Locks))
		return []need{
			alive, {"A3: the work stays locked, and it notes no more", covers(r.Locks, p.works) && subset(r.Notes, p.receipt.Notes) && subset(r.Notes, r.Locks)},
			{"A3: what has begun stays, and begins by Begin alone", !p.gated || same}, {"a write that replaces it tests the resourceVersion", p.isNew(r.ID)},
		}
	case End:
		return []need{{"A2: after its work", len(p.works) == 0 || p.receipt.Strict}}
	case Container:
		return append(c.grows(s, p), alive, need{"it reads what Begin wrote", p.gated && p.ids[x]})
	case Publish:
		return []need{alive, {"it has begun", p.receipt.Begun}, {"its thing", x == "" || has(p.receipt.Locks, x)}}
	case ForeignID:
		return []need{{"A3: an id that is not the pod's", !slices.ContainsFunc(s.IDs, func(x string) bool { return !p.ids[x] })}}
	case Stop, Restart, Secure:
		return nil
	}
	return []need{{"a known step", false}}
}

// needsOfSend returns the conditions for sending a receipt.
func (c *Checker) needsOfSend(s Step, p *pod) []need {
	r := s.Receipt
	needs := []need{
		{"one writer: a process only writes for pods that are not gated", !p.gated}, {"a write", !p.gone && r.Pod == s.Pod && p.isNew(r.ID) && p.stood[r.Tests]},
		{"its work stays locked", covers(r.Locks, p.works)}, {"it notes what it holds", p.mayNote(r)},
	}
	if s.Do == T2 {
		return append(needs, need{"it locks", len(r.Locks) > 0})
	}
	if s.Do == Give {
		return append(needs, need{"it locks no more", subset(r.Locks, p.replaced(r).Locks)})
	}
	needs = []need{
		{"one writer: a controller only writes for gated pods", p.gated && len(r.Notes) == 0}, needs[1],
		{"a begun pod is never withdrawn", !p.replaced(r).Begun},
	}
	if s.Do != Begin {
		return append(needs, need{"it begins nothing", !r.Begun})
	}
	all := !slices.ContainsFunc(r.Locks, func(x string) bool { return !p.shown[shows{s.Showed, x}] })
	return append(needs, need{"it begins", r.Begun}, need{"it tests the receipt that T3 showed", s.Showed == r.Tests}, need{"T3 showed no other lock", all})
}

// needsOfWork returns the conditions for beginning to work on a thing.
func (c *Checker) needsOfWork(s Step, p *pod, needs []need) []need {
	x, noted := s.Thing, false
	if s.Showed == "" || s.Showed == p.receipt.ID {
		noted = slices.Contains(p.receipt.Notes, x)
	}
	shown, unbroken := p.shown[shows{s.Showed, x}], p.unbroken[shows{s.Showed, x}]
	if s.Showed == "" {
		shown, unbroken = p.confirmed(x), true
	}
	needs = append(needs, need{"its last write has its answer", p.last[p.receipt.ID]},
		need{"T3 showed no other lock, or it is noted", shown || noted}, need{"the lock is unbroken", unbroken || noted})
	if p.receipt.Strict {
		needs = append(needs, need{"its time is not over", c.hasLease(p, x, s.At)}, need{"after an interruption it does all steps again", p.leased[x] || noted})
	}
	return append(needs, c.grows(s, p)...)
}

// grows returns the conditions of a token: it is of this lock, not later than what T3 showed, and higher than the token of every earlier pod.
func (c *Checker) grows(s Step, p *pod) []need {
	x, k, before := s.Thing, s.Token, c.tokens[s.Thing]
	if k == 0 {
		return nil
	}
	is := p.spans[x]
	known := is.token == k || p.damaged
	return []need{
		{"the token is of this lock", known || is.since != 0 && k >= is.since}, {"it is not later than what T3 showed, or noted", known || k <= is.until},
		// If an assumption was broken, another pod may have had a higher token meanwhile. The pod keeps its own.
		{"tokens grow", before.pod == p.uid && k >= before.token || k > before.token || p.damaged && p.had[x] == k},
	}
}

func (c *Checker) do(s Step, p *pod) {
	switch s.Do {
	case T2, Give:
		if p.send(s.Receipt); !s.Former {
			p.last = map[string]bool{s.Receipt.ID: true}
		}
	case Locks, Withdraw, Begin:
		p.send(s.Receipt)
	case Arrives:
		if p.last[s.Receipt.ID] {
			p.last[s.Stands.ID] = true
		}
		if c.stands(s.Stands, p, s.Version); s.Receipt.Begun {
			p.ids = set(s.Receipt.Locks)
		}
		p.exposed = p.exposed && p.gated && !s.Receipt.Begun
	case Foreign:
		c.stands(s.Receipt, p, s.Version)
	case T3:
		showed := s.Showed
		if showed == "" {
			showed = p.receipt.ID
		}
		p.shown[shows{showed, s.Thing}] = true
		is := p.spans[s.Thing]
		is.until = max(is.until, s.Version)
		p.spans[s.Thing] = is
	case ShowsLeases:
		p.lease(s.Thing)
	case Work, Container:
		if !p.works[s.Thing] {
			p.works[s.Thing], c.work[s.Thing] = true, append(c.work[s.Thing], p)
		}
		is := p.spans[s.Thing]
		is.token, p.had[s.Thing] = s.Token, s.Token
		if p.spans[s.Thing] = is; s.Token > c.tokens[s.Thing].token {
			c.tokens[s.Thing] = told{s.Token, p.uid}
		}
	case Stop:
		delete(p.works, s.Thing)
		without(c.work, s.Thing, p)
	case Restart:
		clear(p.last)
	case End:
		c.stands(Receipt{Pod: p.uid, Strict: p.receipt.Strict}, p, s.Version)
		p.gone = true
	case Publish:
		p.ids = set(p.receipt.Locks)
	case ForeignID:
		p.ids = set(s.IDs)
	case Secure:
		c.secures(s, p)
	}
}

// stands records the receipt that now stands on the pod.
func (c *Checker) stands(r Receipt, p *pod, version int64) {
	for k := range p.unbroken {
		if !has(r.Locks, k.thing) {
			delete(p.unbroken, k)
		}
	}
	for _, x := range p.receipt.Locks {
		if without(c.lock, x, p); !has(r.Locks, x) {
			delete(p.spans, x)
		}
	}
	for _, x := range r.Locks {
		p.unbroken[shows{r.ID, x}], c.lock[x] = true, append(c.lock[x], p)
		if is := p.spans[x]; is.since == 0 {
			is.since = version
			p.spans[x] = is
		}
	}
	p.receipt, p.stood[r.ID], p.known[r.ID] = r, true, &r
}

// othersLock reports whether another live pod's receipt locks the thing. Between two strict pods the Leases decide instead.
func (c *Checker) othersLock(p *pod, x string) bool {
	locks := func(q *pod) bool { return q != p && (!p.receipt.Strict || !q.receipt.Strict) }
	return slices.ContainsFunc(c.lock[x], locks) || slices.ContainsFunc(c.lock[every(x)], locks)
}

func (p *pod) send(r Receipt) { p.sent[r.ID], p.known[r.ID] = true, &r }

// replaced returns the receipt that a write replaces.
func (p *pod) replaced(r Receipt) Receipt {
	if before := p.known[r.Tests]; before != nil {
		return *before
	}
	return Receipt{}
}

// isNew reports whether this receipt was never sent and never stood on the pod.
func (p *pod) isNew(id string) bool { return !p.sent[id] && !p.stood[id] }

// confirmed reports whether T3 showed no other lock of a thing, and the pod has locked the thing ever since.
func (p *pod) confirmed(x string) bool {
	for k := range p.unbroken {
		if k.thing == x && p.shown[k] {
			return true
		}
	}
	return false
}

// mayNote reports whether the pod may note r.Notes: it must work on each thing, have noted it before, or T3 must have shown no other lock of it.
func (p *pod) mayNote(r Receipt) bool {
	return !slices.ContainsFunc(r.Notes, func(x string) bool {
		return !slices.Contains(r.Locks, x) || !p.confirmed(x) && !p.works[x] && !slices.Contains(p.replaced(r).Notes, x)
	})
}
