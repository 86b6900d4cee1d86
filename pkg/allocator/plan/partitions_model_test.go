package plan

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/ownership"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

//nolint:gochecknoglobals // a flag
var histories = flag.Uint64("histories", 2000, "how many histories TestNoPartitionHasTwoWorkers plays")

// TestNoPartitionHasTwoWorkers plays the protocol's steps of some pods in random orders, with foreign writes, pods that die, processes
// that are started again, and counts that change. Each step is what one request does, so other pods' steps come between any two of
// them. The pods work on what they hold. No two of them ever work on one partition. When nothing is disturbed any more, all
// partitions are worked on, each by the id that should own it.
func TestNoPartitionHasTwoWorkers(t *testing.T) {
	for seed := range *histories {
		m := newModel(seed)
		if err := m.play(); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(m.story[max(0, len(m.story)-60):], "\n"))
		}
	}
}

// Pod b has seen that a yields partitions, and is about to write that they are its own. Somebody removes a's receipt, and a's next process
// does not know the strategy, so it works on whatever its id owns.
func TestWhoDoesNotKnowTheStrategyTakesNothingThatAPlanMoves(t *testing.T) {
	m := newModel(0)
	m.quiet, m.count, m.pods = true, 2, nil
	m.start()
	m.start()
	a, b := m.pods[0], m.pods[1]
	m.state = assignment.State{Slots: assignment.Slots{0: a.name, 1: b.name}, UIDs: assignment.Slots{0: "u", 1: "u"}, Epoch: 7}
	m.state.Partitions = &assignment.Partitions{Count: 4, Strategy: placement.NameRange, Owners: placement.Owners{0: placement.Between(0, 3), 1: {}}}
	m.wish = assignment.Wish{HasCount: true, Count: 4, Strategy: placement.NameRange}
	m.trust, m.parts = assignment.Clean, assignment.Clean
	none, locked := placement.Set{}, placement.Between(0, 1)
	a.receipt = &assignment.Receipt{UID: "u", Owner: "o", ID: 0, Epoch: 7, Partitions: &locked, Yields: placement.Between(2, 3)}
	b.receipt = &assignment.Receipt{UID: "u", Owner: "o", ID: 1, Epoch: 7, Partitions: &none}
	b.process.id = 1
	m.plan(b, Claim)
	m.act(b) // b lists the pods
	a.receipt, a.older, a.process = nil, true, &process{id: -1}
	for range 10 {
		m.act(a)
	}
	for range 10 {
		m.act(b)
		if err := m.check(); err != nil {
			t.Fatalf("%v\n%s", err, strings.Join(m.story, "\n"))
		}
	}
	if a.process.held.Empty() || a.process.held.Union(b.process.held).Len() != 4 {
		t.Errorf("they work on %s and %s", a.process.held, b.process.held)
	}
}

// model is an owner, its pods, and the processes in them.
type model struct {
	*rand.Rand
	story []string

	count    int
	state    assignment.State
	trust    assignment.Trust
	parts    assignment.Trust
	wish     assignment.Wish
	version  int
	old      []assignment.State
	pods     []*modelPod
	born     int
	now      time.Time
	quiet    bool
	late     []func()
	strategy []string
	// rate and kinds are how often something disturbs and what: a random part of all kinds, so that rare ones meet.
	rate  int
	kinds []int
	// outlives says that work goes on when its process ends.
	outlives bool
	// mixed says that some pods do not know one of the strategies.
	mixed bool
}

type modelPod struct {
	name    string
	created time.Time
	receipt *assignment.Receipt
	aware   bool
	// older says that the pod does not know one of the strategies.
	older   bool
	process *process
	gone    bool
	// left is what work of an earlier process goes on on, and what the pod's files say.
	left placement.Set
	// suspended is for how many steps the process does nothing.
	suspended int
}

// process is what a process remembers.
type process struct {
	id   int // -1 without a slot
	held placement.Set
	// yielded is what it yields, whatever its receipt says.
	yielded placement.Set
	// paused says that it wants no partitions.
	paused bool
	// next is the rest of what it has begun.
	next []func()
	own  bool // a write of its own was accepted since it gave up
}

func newModel(seed uint64) *model {
	m := &model{Rand: rand.New(rand.NewPCG(seed, 7)), now: t0, strategy: placement.Names()[:3]} //nolint:gosec // a seed shows a history again
	m.rate = 2 + m.IntN(14)
	for len(m.kinds) < 1+m.IntN(4) {
		m.kinds = append(m.kinds, m.IntN(kinds))
	}
	if m.IntN(4) == 0 {
		m.kinds = []int{11, forgets} // what is yielded, and forgotten, while planners are slow
	}
	if slices.Contains(m.kinds, forgets) { // whoever removes receipts leaves the map alone
		m.kinds = slices.DeleteFunc(m.kinds, func(kind int) bool { return kind >= 3 && kind <= 6 })
	}
	if m.mixed = m.IntN(4) == 0; m.mixed {
		m.kinds, m.rate = []int{2, 2, 11, forgets}, 2+m.IntN(4)
	}
	m.outlives = m.IntN(2) == 0
	m.count = 1 + m.IntN(3)
	m.wish = assignment.Wish{Count: 1 + m.IntN(4), HasCount: true, Strategy: m.strategy[m.IntN(3)], FailoverAfter: time.Second}
	for range m.count {
		m.start()
	}
	return m
}

func (m *model) logf(format string, args ...any) {
	m.story = append(m.story, fmt.Sprintf(format, args...))
}

func (m *model) start() {
	m.born++
	m.pods = append(m.pods, &modelPod{name: fmt.Sprintf("p%d", m.born), created: m.now, aware: true, older: m.mixed && m.IntN(2) == 0, process: &process{id: -1}})
}

func (m *model) play() error {
	steps := 40 + m.IntN(160)
	for range steps {
		m.step()
		if err := m.check(); err != nil {
			return err
		}
	}
	return m.settle()
}

func (m *model) step() {
	m.now = m.now.Add(time.Duration(m.IntN(20)) * time.Millisecond)
	if !m.quiet && m.IntN(m.rate) == 0 {
		m.disturb()
		return
	}
	if len(m.late) > 0 && m.IntN(8) == 0 {
		i := m.IntN(len(m.late))
		do := m.late[i]
		m.late = slices.Delete(m.late, i, i+1)
		do()
		return
	}
	live := slices.DeleteFunc(slices.Clone(m.pods), func(p *modelPod) bool {
		if p.suspended = max(0, p.suspended-1); !m.quiet && m.IntN(40) == 0 {
			p.suspended = m.IntN(100)
		}
		return p.gone || (p.suspended > 0 && !m.quiet)
	})
	if len(live) > 0 {
		m.act(live[m.IntN(len(live))])
	}
}

// kinds is the number of ways in which disturb disturbs.
const kinds = 13

// forgets is the kind that removes the receipt of a pod while its process is started again.
const forgets = 12

// disturb does what users, nodes and other writers do.
func (m *model) disturb() {
	m.old = append(m.old, m.state.Clone())
	pod := m.pods[m.IntN(len(m.pods))]
	switch m.kinds[m.IntN(len(m.kinds))] {
	case 0:
		m.count = 1 + m.IntN(4)
		m.version++
		m.logf("count %d", m.count)
	case 1:
		m.wish.Count = m.IntN(6)
		m.version++
		m.logf("wants %d", m.wish.Count)
	case 2:
		m.wish.Strategy = m.strategy[m.IntN(3)]
		m.version++
		m.logf("wants %s", m.wish.Strategy)
	case 3:
		m.logf("all annotations removed")
		m.state, m.trust, m.parts = assignment.State{}, assignment.Absent, assignment.Absent
		m.version++
	case 4:
		m.logf("owners of partitions removed")
		m.state.Partitions, m.parts = nil, assignment.Absent
		m.version++
	case 5:
		m.state, m.trust, m.parts = m.old[m.IntN(len(m.old))].Clone(), assignment.Foreign, assignment.Foreign
		m.version++
		m.logf("an old map is back: %v %s", m.state.Slots, rowText(m.state.Partitions))
	case 6:
		m.trust = assignment.Foreign
		m.state.Slots = assignment.Slots{}
		m.version++
		m.logf("slots removed")
	case 7, 8:
		if !pod.gone {
			m.logf("%s dies", pod.name)
			pod.gone, pod.left = true, placement.Set{}
			m.abandon(pod)
			if m.IntN(4) > 0 {
				m.start()
			}
		}
	case 9:
		if !pod.gone {
			m.logf("%s starts again", pod.name)
			m.abandon(pod)
			pod.process = &process{id: -1}
		}
	case 10:
		if !pod.gone && pod.process.id >= 0 && len(pod.process.next) == 0 {
			m.give(pod) // as when another pod asks for the slot
		}
	case 11:
		if p := pod.process; !pod.gone && p.id >= 0 && len(p.next) == 0 {
			p.paused = !p.paused
			m.logf("%s is paused: %t", pod.name, p.paused)
			m.receipt(pod, *pod.receipt.Partitions, p.yielded)
		}
	case forgets:
		if r := pod.receipt; !pod.gone && r.Locks() {
			m.logf("%s starts again without its receipt", pod.name)
			m.abandon(pod)
			pod.receipt = nil
		}
	}
	for m.living() < m.count {
		m.start()
	}
}

func (m *model) living() (n int) {
	for _, p := range m.pods {
		if !p.gone {
			n++
		}
	}
	return n
}

// abandon ends a process. A request that it has sent may still arrive: the write of the owner, which tests its version.
func (m *model) abandon(pod *modelPod) {
	if m.outlives && !pod.gone {
		pod.left = pod.left.Union(pod.process.held)
	}
	pod.process = &process{id: -1}
}

// act does the next step of a process.
func (m *model) act(pod *modelPod) {
	p := pod.process
	if len(p.next) > 0 {
		do := p.next[0]
		p.next = p.next[1:]
		do()
		return
	}
	if p.id < 0 {
		m.claim(pod)
		return
	}
	m.hold(pod)
}

func (m *model) view(pod *modelPod, id int) ownership.View {
	clean := m.trust == assignment.Clean && m.parts == assignment.Clean
	return ownership.View{Count: m.count, Row: m.state.Partitions, Clean: clean, ID: id, Paused: pod.process.paused, Strategies: pod.strategies}
}

// strategies finds a strategy that the pod knows.
func (p *modelPod) strategies(name string) (placement.Strategy, error) {
	if p.older && name == placement.NameRange {
		return nil, placement.ErrUnknownStrategy
	}
	return placement.Named(name)
}

// writesFirst reports whether the pod takes only from a write of its own.
func (m *model) writesFirst(pod *modelPod) bool {
	if r := pod.receipt; r != nil && (r.GaveUp || r.Locks()) {
		return r.GaveUp
	}
	if m.state.Partitions == nil {
		return false
	}
	_, err := pod.strategies(m.state.Partitions.Strategy)
	return err != nil
}

func (m *model) names(pod *modelPod) (int, bool) {
	id, ok := m.state.Slots.Of(pod.name)
	return id, ok && m.trust == assignment.Clean
}

func (m *model) claim(pod *modelPod) {
	if id, ok := m.names(pod); ok && (!m.writesFirst(pod) || pod.process.own) {
		m.take(pod, id)
		return
	}
	if r := pod.receipt; r != nil && r.Gives && m.trust == assignment.Clean {
		if _, named := m.state.Slots.Of(pod.name); !named {
			pod.receipt = &assignment.Receipt{UID: "u", Owner: "o", GaveUp: true}
			return
		}
	}
	if r := pod.receipt; r.Locks() && m.trust == assignment.Clean { // of an earlier process
		if holder, taken := m.state.Slots[r.ID]; taken && holder != pod.name {
			pod.receipt, pod.left = nil, placement.Set{}
			return
		}
	}
	m.plan(pod, Claim)
}

// take is T1 to T4 of a slot with the partitions of its id.
func (m *model) take(pod *modelPod, id int) {
	p := pod.process
	var before placement.Set
	if r := pod.receipt; r.Locks() && r.ID == id && r.Partitions != nil {
		before, p.yielded, p.paused = *r.Partitions, p.yielded.Union(r.Yields), r.Paused
	}
	before = before.Union(pod.left)
	duties := ownership.DutiesAt(m.view(pod, id), placement.Set{}, before, p.yielded, false)
	lock := before.Union(duties.Take)
	epoch := m.state.Epoch
	p.next = []func(){func() { // T2
		pod.receipt = &assignment.Receipt{UID: "u", Owner: "o", ID: id, Epoch: epoch, HandsOver: true, Partitions: &lock, Yields: p.yielded, Paused: p.paused}
		m.logf("%s locks %d: %s, yields %s", pod.name, id, lock, p.yielded)
		p.next = []func(){func() { m.confirm(pod, id, lock) }}
	}}
}

// confirm is T4.
func (m *model) confirm(pod *modelPod, id int, lock placement.Set) {
	p := pod.process
	now, named := m.names(pod)
	if m.trust != assignment.Clean && !pod.left.Empty() {
		m.logf("%s has to restore the map first", pod.name)
		return
	}
	if !named || now != id {
		m.logf("%s does not get %d", pod.name, id)
		pod.receipt, pod.left = nil, placement.Set{}
		p.yielded = placement.Set{}
		return
	}
	p.id, p.own = id, false
	m.keep(pod, lock)
}

// keep begins to work on what a moment of the owner confirms, and lets go of the other locks.
func (m *model) keep(pod *modelPod, lock placement.Set) {
	p := pod.process
	view := m.view(pod, p.id)
	confirmed := lock.Intersect(view.Mine()).Union(p.held)
	p.held, pod.left = confirmed, pod.left.Minus(confirmed)
	kept := confirmed.Union(pod.left)
	m.logf("%s works on %d: %s", pod.name, p.id, p.held)
	p.next = []func(){func() { m.receipt(pod, kept, p.yielded) }}
}

func (m *model) receipt(pod *modelPod, lock, yields placement.Set) {
	r := *pod.receipt
	r.Partitions, r.Yields, r.Epoch, r.Paused = &lock, yields, max(r.Epoch, m.state.Epoch), pod.process.paused
	pod.receipt = &r
}

// hold does what a holder has to do.
func (m *model) hold(pod *modelPod) {
	p := pod.process
	if holder, taken := m.state.Slots[p.id]; m.trust == assignment.Clean && taken && holder != pod.name {
		m.logf("%s loses %d", pod.name, p.id)
		pod.receipt, pod.left, *p = nil, placement.Set{}, process{id: -1}
		return
	}
	if m.trust == assignment.Clean && p.id >= m.count {
		m.give(pod)
		return
	}
	if m.IntN(4) == 0 || m.trust != assignment.Clean {
		m.plan(pod, Claim)
		return
	}
	locked := *pod.receipt.Partitions
	duties := ownership.DutiesAt(m.view(pod, p.id), p.held, locked, p.yielded, false)
	switch {
	case !duties.Lost.Empty():
		m.logf("%s loses %s", pod.name, duties.Lost)
		p.held, pod.left = p.held.Minus(duties.Lost), pod.left.Minus(duties.Lost)
		p.next = []func(){func() { m.receipt(pod, locked.Minus(duties.Lost), p.yielded) }}
	case !duties.Back.Empty(): // this is the live read after the yield
		p.yielded = p.yielded.Minus(duties.Back)
		p.next = []func(){func() { m.receipt(pod, locked, p.yielded) }}
	case !duties.Stop.Empty():
		p.next = []func(){func() { m.yield(pod, duties.Stop) }}
	case !duties.Yield.Empty():
		m.yield(pod, duties.Yield)
	case !duties.Take.Empty():
		lock := locked.Union(duties.Take)
		p.next = []func(){func() { // T2
			m.receipt(pod, lock, p.yielded)
			p.next = []func(){func() { m.keep(pod, lock) }}
		}}
	default:
		m.plan(pod, Claim)
	}
}

// yield is the W2 of a yield, after the work has stopped and after a look whether it is still to be.
func (m *model) yield(pod *modelPod, set placement.Set) {
	p := pod.process
	duties := ownership.DutiesAt(m.view(pod, p.id), p.held, *pod.receipt.Partitions, p.yielded, false)
	set = set.Intersect(duties.Stop.Union(duties.Yield))
	p.held, p.yielded = p.held.Minus(set), p.yielded.Union(set)
	if set.Empty() {
		return
	}
	p.next = []func(){func() {
		m.logf("%s yields %s", pod.name, set)
		m.receipt(pod, pod.receipt.Partitions.Minus(set), p.yielded)
		p.next = []func(){func() { m.plan(pod, Claim) }}
	}}
}

// give is G1 to G3.
func (m *model) give(pod *modelPod) {
	p := pod.process
	id := p.id
	*p = process{id: -1}
	pod.left = placement.Set{}
	p.next = []func(){func() {
		m.logf("%s gives %d", pod.name, id)
		pod.receipt = &assignment.Receipt{UID: "u", Owner: "o", GaveUp: true, Gives: true, ID: id}
		p.next = []func(){func() { m.plan(pod, Move) }}
	}}
}

// plan is R, L and C.
func (m *model) plan(pod *modelPod, intent Intent) {
	p := pod.process
	in := Input{ // R
		Count: m.count, State: m.state.Clone(), Trust: m.trust, Me: pod.name, Intent: intent, NeedsWrite: m.writesFirst(pod), Now: m.now,
		Partitions: Partitions{Trust: m.parts, Wish: m.wish, Vacant: map[int]bool{}, Joins: m.IntN(2) == 0, Strategies: pod.strategies},
	}
	if m.quiet || m.IntN(3) == 0 {
		for id := range 5 {
			in.Partitions.Vacant[id] = true
		}
	}
	version := m.version
	p.next = []func(){func() { // L
		for _, other := range m.pods {
			if !other.gone {
				in.Pods = append(in.Pods, Pod{
					Name: other.name, UID: "u", Created: other.created, Controller: "rs", Owned: true, Ordinal: NoOrdinal, Receipt: other.receipt,
				})
			}
		}
		if !m.quiet && slices.Contains(m.kinds, forgets) && m.IntN(2) == 0 {
			pod.suspended = m.IntN(40)
		}
		commit := func() bool { // C
			d := Plan(in)
			if m.version != version || d.Next == nil {
				return false
			}
			m.version++
			m.state, m.trust = d.Next.Clone(), assignment.Clean
			if d.Partitions.Changed {
				m.parts = assignment.Clean
				if m.state.Partitions == nil {
					m.parts = assignment.Absent
				}
			}
			m.logf("%s writes %v %s", pod.name, m.state.Slots, rowText(m.state.Partitions))
			return true
		}
		if !m.quiet && m.IntN(10) == 0 { // the process dies, and its write arrives later
			m.late = append(m.late, func() { commit() })
			m.abandon(pod)
			return
		}
		p.next = []func(){func() { p.own = commit() || p.own }}
	}}
}

func rowText(row *assignment.Partitions) string {
	if row == nil {
		return "no partitions"
	}
	return row.Encode()
}

// check looks at what the processes work on.
func (m *model) check() error {
	workers := map[int]string{}
	for _, pod := range m.pods {
		for k := range pod.process.held.Union(pod.left).All() {
			if other, taken := workers[k]; taken {
				return fmt.Errorf("%s and %s work on partition %d", other, pod.name, k)
			}
			workers[k] = pod.name
		}
	}
	return nil
}

// settle plays without disturbance until all partitions are worked on by the ids that should.
func (m *model) settle() error {
	m.quiet = true
	for _, pod := range m.pods {
		pod.process.paused, pod.older = false, false
		if pod.receipt != nil {
			r := *pod.receipt
			r.Paused, pod.receipt = false, &r
		}
	}
	m.wish.Count = max(1, m.wish.Count)
	for m.living() > m.count {
		for _, pod := range m.pods {
			if !pod.gone && m.living() > m.count {
				pod.gone, pod.left = true, placement.Set{}
				m.abandon(pod)
			}
		}
	}
	m.logf("nothing is disturbed any more: count %d, %d partitions %s", m.count, m.wish.Count, m.wish.Strategy)
	for range 60 {
		for range 40 {
			m.step()
			if err := m.check(); err != nil {
				return err
			}
		}
		if m.rests() {
			return nil
		}
	}
	return fmt.Errorf("it does not come to rest: %v %s", m.state.Slots, rowText(m.state.Partitions))
}

func (m *model) rests() bool {
	worked := placement.Set{}
	for _, pod := range m.pods {
		if pod.gone {
			continue
		}
		p := pod.process
		aim, ok := m.view(pod, p.id).Aim()
		if p.id < 0 || !ok || !p.held.Equal(aim) || !pod.receipt.Yields.Empty() || !pod.receipt.Partitions.Equal(aim) {
			return false
		}
		worked = worked.Union(p.held)
	}
	return worked.Equal(placement.Between(0, m.wish.Count-1))
}
