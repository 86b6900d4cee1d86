package conformance

import (
	"cmp"
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
	first := Receipt{ID: receipt, Pod: uid}
	c.pods[uid] = &pod{uid: uid, receipt: first, gated: gated, versions: []*version{{Receipt: first, stood: true}}}
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
			{"a write", p.version(r.ID).sent && r.Pod == s.Pod && !p.gone},
			{"it tests the receipt that it replaces", p.receipt.ID == r.Tests}, {"it writes what was never there before", s.Stands.ID == r.ID},
		}
	case T3:
		return []need{
			alive, {"it shows the pod's own receipt", s.Showed != "" && p.thing(x).isUnbroken(s.Showed) || has(p.receipt.Locks, x)},
			{"it shows the locks of all live pods", s.Former || !c.othersLock(p, x)},
		}
	case ShowsLeases:
		return []need{alive, {"it shows the pod's own Lease", c.hasLease(p, x, s.At)}, {"it shows all Leases that have not expired", !c.othersLease(p, x, s.At)}}
	case Work:
		return c.needsOfWork(s, p, []need{process, alive})
	case Foreign:
		same := r.Begun == p.receipt.Begun && (!r.Begun || subset(r.Locks, p.receipt.Locks) && subset(p.receipt.Locks, r.Locks))
		return []need{
			alive, {"A3: the work stays locked, and it notes no more", p.worksWithin(r.Locks) && subset(r.Notes, p.receipt.Notes) && subset(r.Notes, r.Locks)},
			{"A3: what has begun stays, and begins by Begin alone", !p.gated || same}, {"a write that replaces it tests the resourceVersion", p.isNew(r.ID)},
		}
	case End:
		return []need{{"A2: after its work", p.worksWithin(nil) || p.receipt.Strict}}
	case Stop, Restart, Secure:
		return nil
	case Container, Publish, ForeignID:
		return c.needsOfID(s, p)
	}
	return []need{{"a known step", false}}
}

// needsOfID returns the conditions for reading or writing the id of a gated pod.
func (c *Checker) needsOfID(s Step, p *pod) []need {
	alive := need{"a pod", !p.gone}
	if s.Do == Container {
		return append(c.grows(s, p), alive, need{"it reads what Begin wrote", p.gated && slices.Contains(p.ids, s.Thing)})
	}
	if s.Do == Publish {
		return []need{alive, {"it has begun", p.receipt.Begun}, {"its thing", s.Thing == "" || has(p.receipt.Locks, s.Thing)}}
	}
	return []need{{"A3: an id that is not the pod's", !slices.ContainsFunc(s.IDs, func(x string) bool { return !slices.Contains(p.ids, x) })}}
}

// needsOfSend returns the conditions for sending a receipt.
func (c *Checker) needsOfSend(s Step, p *pod) []need {
	r := s.Receipt
	needs := []need{
		{"one writer: a process only writes for pods that are not gated", !p.gated}, {"a write", !p.gone && r.Pod == s.Pod && p.isNew(r.ID) && p.version(r.Tests).stood},
		{"its work stays locked", p.worksWithin(r.Locks)}, {"it notes what it holds", p.mayNote(r)},
	}
	if s.Do == T2 {
		return append(needs, need{"it locks", len(r.Locks) > 0})
	}
	if s.Do == Give {
		return append(needs, need{"it locks no more", subset(r.Locks, p.version(r.Tests).Locks)})
	}
	needs = []need{
		{"one writer: a controller only writes for gated pods", p.gated && len(r.Notes) == 0}, needs[1],
		{"a begun pod is never withdrawn", !p.version(r.Tests).Begun},
	}
	if s.Do != Begin {
		return append(needs, need{"it begins nothing", !r.Begun})
	}
	all := !slices.ContainsFunc(r.Locks, func(x string) bool { return !p.thing(x).isShown(s.Showed) })
	return append(needs, need{"it begins", r.Begun}, need{"it tests the receipt that T3 showed", s.Showed == r.Tests}, need{"T3 showed no other lock", all})
}

// needsOfWork returns the conditions for beginning to work on a thing.
func (c *Checker) needsOfWork(s Step, p *pod, needs []need) []need {
	x, noted := s.Thing, false
	if s.Showed == "" || s.Showed == p.receipt.ID {
		noted = slices.Contains(p.receipt.Notes, x)
	}
	is := p.thing(x)
	shown, unbroken := is.isShown(s.Showed), is.isUnbroken(s.Showed)
	if s.Showed == "" {
		shown, unbroken = is.confirmed(), true
	}
	needs = append(needs, need{"its last write has its answer", p.version(p.receipt.ID).last},
		need{"T3 showed no other lock, or it is noted", shown || noted}, need{"the lock is unbroken", unbroken || noted})
	if p.receipt.Strict {
		needs = append(needs, need{"its time is not over", c.hasLease(p, x, s.At)}, need{"after an interruption it does all steps again", is.leased || noted})
	}
	return append(needs, c.grows(s, p)...)
}

// grows returns the conditions of a token: it is of this lock, not later than what T3 showed, and higher than the token of every earlier pod.
func (c *Checker) grows(s Step, p *pod) []need {
	x, k, before := s.Thing, s.Token, c.tokens[s.Thing]
	if k == 0 {
		return nil
	}
	is := p.thing(x)
	known := is.token == k || p.damaged
	return []need{
		{"the token is of this lock", known || is.since != 0 && k >= is.since}, {"it is not later than what T3 showed, or noted", known || k <= is.until},
		// If an assumption was broken, another pod may have had a higher token meanwhile. The pod keeps its own.
		{"tokens grow", before.pod == p.uid && k >= before.token || k > before.token || p.damaged && is.had == k},
	}
}

func (c *Checker) do(s Step, p *pod) {
	switch s.Do {
	case T2, Give:
		if p.send(s.Receipt); !s.Former {
			p.answered(s.Receipt.ID)
		}
	case Locks, Withdraw, Begin:
		p.send(s.Receipt)
	case Arrives:
		is := p.of(s.Stands)
		is.last = is.last || p.version(s.Receipt.ID).last
		if c.stands(s.Stands, p, s.Version); s.Receipt.Begun {
			p.ids = s.Receipt.Locks
		}
		p.exposed = p.exposed && p.gated && !s.Receipt.Begun
	case Foreign:
		c.stands(s.Receipt, p, s.Version)
	case T3:
		p.use(s.Thing).show(cmp.Or(s.Showed, p.receipt.ID), s.Version)
	case ShowsLeases:
		p.use(s.Thing).leased = true
	case Work, Container:
		c.works(s, p)
	case Stop:
		p.use(s.Thing).works = false
		without(c.work, s.Thing, p)
	case Restart:
		p.answered("")
	case End:
		c.stands(Receipt{Pod: p.uid, Strict: p.receipt.Strict}, p, s.Version)
		p.gone = true
	case Publish:
		p.ids = p.receipt.Locks
	case ForeignID:
		p.ids = s.IDs
	case Secure:
		c.secures(s, p)
	}
}

// works records that the pod works on a thing with a token.
func (c *Checker) works(s Step, p *pod) {
	is := p.use(s.Thing)
	if !is.works {
		is.works, c.work[s.Thing] = true, append(c.work[s.Thing], p)
	}
	if is.token, is.had = s.Token, s.Token; s.Token > c.tokens[s.Thing].token {
		c.tokens[s.Thing] = told{s.Token, p.uid}
	}
}

// stands records the receipt that now stands on the pod.
func (c *Checker) stands(r Receipt, p *pod, version int64) {
	for _, is := range p.things {
		if !has(r.Locks, is.name) {
			is.unbroken = nil
		}
	}
	for _, x := range p.receipt.Locks {
		if without(c.lock, x, p); !has(r.Locks, x) {
			is := p.use(x)
			is.since, is.until, is.token = 0, 0, 0
		}
	}
	for _, x := range r.Locks {
		is := p.use(x)
		if c.lock[x] = append(c.lock[x], p); !is.isUnbroken(r.ID) {
			is.unbroken = append(is.unbroken, r.ID)
		}
		if is.since == 0 {
			is.since = version
		}
	}
	is := p.of(r)
	p.receipt, is.Receipt, is.stood = r, r, true
}

// othersLock reports whether another live pod's receipt locks the thing. Between two strict pods the Leases decide instead.
func (c *Checker) othersLock(p *pod, x string) bool {
	locks := func(q *pod) bool { return q != p && (!p.receipt.Strict || !q.receipt.Strict) }
	return slices.ContainsFunc(c.lock[x], locks) || slices.ContainsFunc(c.lock[every(x)], locks)
}
