package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// Plan returns the owner's next state. It never fails and never blocks; its cost is
// O((N + pods) log(N + pods)), and where the annotations are full log(N) times that.
func Plan(in Input) Decision {
	p := newPlanner(in, unbounded)
	d := p.decide()
	if err := p.fits(d); err != nil {
		return within(in, p.added(), err)
	}
	return d
}

func (p *planner) decide() Decision {
	if p.in.Trust == assignment.Clean {
		p.keepLiveEntries() // rules 2 and 5
	}
	p.quarantine()      // strict mode
	p.restoreReceipts() // rule 1
	if p.in.Intent != Claim {
		p.give()
	}
	p.keepRequests()  // rule 2
	p.serveRequests() // rule 3
	p.serveWaiters()  // rule 4
	p.dropMet()       // rule 2
	p.ask()           // rule 6
	p.dismiss()       // strict mode
	return p.decision()
}

// contested stands in planner.locks for a slot that the receipts of several live pods name. It is no pod's name.
const contested = ""

type planner struct {
	in Input
	// most bounds how many entries and requests are new, and left is what of it is left.
	most, left int

	pods  map[string]*Pod
	next  assignment.State
	holds map[string]int // pod name to id, the inverse of next.Slots
	locks map[int]string // slots that a live pod's receipt names; contested where several do
	freed []Change
	live  int
	wait  int
	// barred are waiters that gave up and must not have a free slot.
	barred int
	// scarce says that there are fewer free slots than pods that might want one.
	scarce   bool
	standing standing
	fence    time.Duration
	asking   HandOver
}

func newPlanner(in Input, most int) *planner {
	p := &planner{
		in: in, most: most, left: most,
		pods:  make(map[string]*Pod, len(in.Pods)),
		holds: make(map[string]int, len(in.Pods)),
		locks: make(map[int]string, len(in.Pods)),
		next: assignment.State{
			Slots: make(assignment.Slots, min(in.Count, len(in.Pods))), UIDs: make(assignment.Slots, min(in.Count, len(in.Pods))),
		},
	}
	for i := range in.Pods {
		pod := &in.Pods[i]
		p.pods[pod.Name] = pod
		if pod.Owned {
			p.live++
		}
	}
	p.fence = fence(in)
	return p
}

func (p *planner) assign(id int, pod *Pod) {
	p.next.Slots[id] = pod.Name
	p.next.UIDs[id] = assignment.ShortUID(pod.UID)
	p.holds[pod.Name] = id
}

// keepLiveEntries carries over every entry of a live pod and frees the others.
func (p *planner) keepLiveEntries() {
	for _, id := range p.in.State.Slots.IDs() {
		name := p.in.State.Slots[id]
		pod, alive := p.pods[name]
		switch {
		case !alive:
			p.freed = append(p.freed, Change{ID: id, Pod: name, Cause: CauseDead})
		case p.in.State.UIDs[id] != assignment.ShortUID(pod.UID):
			p.freed = append(p.freed, Change{ID: id, Pod: name, Cause: CauseReplaced})
		case pod.gives(id): // so that of many that give at once one can write for all
			p.freed = append(p.freed, Change{ID: id, Pod: name, Cause: CauseGiven})
		default:
			p.assign(id, pod)
		}
	}
}

// restoreReceipts locks every slot that a live receipt names, and writes its pod in where neither
// the slot nor the pod has an entry. In a map that is not clean this is the whole assignment. In a clean one a
// receipt without an entry is that of a pod that does not act yet, so it does not end a quarantine.
//
// Where the receipts of several pods name a slot, one of them may act, and nothing here tells which: a receipt that was
// late has the higher epoch as often as not. So the slot is written for none of them. The one that acts keeps its receipt,
// the others find that they are not named and withdraw theirs, and a later plan writes in the one that is left.
func (p *planner) restoreReceipts() {
	holders := make([]*Pod, 0, len(p.in.Pods))
	for i := range p.in.Pods {
		pod := &p.in.Pods[i]
		if !pod.locks() {
			continue
		}
		holders = append(holders, pod)
		if _, locked := p.locks[pod.Receipt.ID]; locked {
			p.locks[pod.Receipt.ID] = contested
		} else {
			p.locks[pod.Receipt.ID] = pod.Name
		}
	}
	for _, pod := range holders {
		id := pod.Receipt.ID
		_, taken := p.next.Slots[id]
		_, has := p.holds[pod.Name]
		switch {
		case taken || has || p.locks[id] != pod.Name:
		case p.in.Trust != assignment.Clean:
			p.assign(id, pod) // its pod may act, so all of these are written or none
		case !p.quarantined(id):
			p.add(id, pod)
		}
	}
	if p.in.Trust != assignment.Clean {
		p.noteUnbacked()
	}
}

func (p *planner) noteUnbacked() {
	for _, id := range p.in.State.Slots.IDs() {
		name := p.in.State.Slots[id]
		if p.next.Slots[id] == name {
			continue
		}
		cause := CauseUnsealed
		if _, alive := p.pods[name]; !alive {
			cause = CauseDead
		}
		p.freed = append(p.freed, Change{ID: id, Pod: name, Cause: cause})
	}
}

func (p *planner) give() {
	id, ok := p.holds[p.in.Me]
	if !ok {
		return
	}
	delete(p.next.Slots, id)
	delete(p.next.UIDs, id)
	delete(p.holds, p.in.Me)
	if p.locks[id] == p.in.Me {
		delete(p.locks, id)
	}
	p.freed = append(p.freed, Change{ID: id, Pod: p.in.Me, Cause: CauseGiven})
}

// serveWaiters gives the free slots below N to me and my siblings. Another revision's pods may not
// run idalloc at all; they plan for themselves. Where there are not enough slots, so do siblings that have not shown life.
func (p *planner) serveWaiters() {
	for before := -1; before < len(p.holds); { // who got a slot stands in nobody's way any more
		before = len(p.holds)
		p.serveOnce()
	}
}

func (p *planner) serveOnce() {
	p.wait, p.barred = 0, 0
	p.survey()
	waiters := p.waiters()
	p.rank(waiters)
	p.scarce = p.open() < p.slotless()
	if me := p.pods[p.in.Me]; me != nil && p.in.Intent == Claim && p.isBarred(me) {
		// It plans, but it is out of the running, and so is its revision: siblings that run plan for themselves.
		p.wait += len(waiters)
		return
	}
	rest := waiters[:0:0]
	for _, pod := range waiters {
		switch {
		case pod.Ordinal < 0 || pod.Ordinal >= p.in.Count:
			rest = append(rest, pod)
		case p.free(pod.Ordinal, pod):
			if !p.add(pod.Ordinal, pod) {
				p.wait++
			}
		case p.occupied(pod.Ordinal):
			rest = append(rest, pod)
		default:
			p.wait++
		}
	}
	if p.scarce {
		alive := p.alive(rest)
		p.wait += len(rest) - len(alive)
		rest = alive
	}
	id := 0
	for _, pod := range rest {
		if id = p.nextFree(id, pod); id >= p.in.Count || !p.add(id, pod) {
			p.wait++
		}
	}
}

// occupied reports whether a live pod has the slot that will not leave it soon. So it may be after a Job's parallelism was
// raised or the start of a StatefulSet's ordinals was changed: the pod that has that ordinal now takes another slot.
func (p *planner) occupied(id int) bool {
	holder, ok := p.pods[p.next.Slots[id]]
	return ok && !holder.Terminating
}

// open counts the slots below N that no live pod has or locks, those in quarantine too: they come free by themselves.
func (p *planner) open() int {
	n := p.in.Count
	for id := range p.next.Slots {
		if id < p.in.Count {
			n--
		}
	}
	for id := range p.locks {
		if _, taken := p.next.Slots[id]; !taken && id < p.in.Count {
			n--
		}
	}
	return n
}

// slotless counts the pods, of whatever revision, that have no slot and might want one.
func (p *planner) slotless() int {
	n := 0
	for i := range p.in.Pods {
		pod := &p.in.Pods[i]
		_, has := p.holds[pod.Name]
		if !has && pod.Owned && !pod.Terminating && (pod.Name != p.in.Me || p.in.Intent != Release) {
			n++
		}
	}
	return n
}

// alive returns the waiters whose programs are known to run: me first, then the siblings that have shown life, in their
// order. A slot that is given to a pod that never starts is nobody's for as long as that pod lives (rule 5).
func (p *planner) alive(waiters []*Pod) []*Pod {
	alive := make([]*Pod, 0, len(waiters))
	for _, pod := range waiters {
		switch {
		case pod.Name == p.in.Me:
			alive = slices.Insert(alive, 0, pod)
		case pod.showsLife() && !pod.failed(): // one that fails may be between two tries
			alive = append(alive, pod)
		}
	}
	return alive
}

// free reports whether the slot may go to pod, which has none.
func (p *planner) free(id int, pod *Pod) bool {
	if _, taken := p.next.Slots[id]; taken || p.quarantined(id) || pod.gives(id) {
		return false
	}
	_, locked := p.locks[id]
	return !locked
}

// nextFree returns the first slot from id on that pod may have; at or above N there is none. N may be two billion, so that
// a quarantine is passed in one step.
func (p *planner) nextFree(id int, pod *Pod) int {
	for id < p.in.Count && !p.free(id, pod) {
		if span, ok := p.next.Quarantine.Span(id); ok && !p.in.Served[span.Epoch] {
			id = span.To
		}
		id++
	}
	return id
}

// waiters returns me and my siblings without an entry and without a receipt for a slot, oldest first. A pod that was
// relabelled is not the owner's any more: it keeps a slot, but another pod runs in its place and gets the next one.
func (p *planner) waiters() []*Pod {
	me, ok := p.pods[p.in.Me]
	if !ok {
		return nil
	}
	waiters := make([]*Pod, 0, len(p.in.Pods))
	for i := range p.in.Pods {
		pod := &p.in.Pods[i]
		_, has := p.holds[pod.Name]
		if has || pod.locks() || !pod.Owned || pod.Terminating || (pod == me && p.in.Intent == Release) || (pod != me && (pod.Controller == "" || pod.Controller != me.Controller)) {
			continue
		}
		if p.isBarred(pod) {
			p.wait++
			p.barred++
			continue
		}
		waiters = append(waiters, pod)
	}
	slices.SortFunc(waiters, older)
	return waiters
}

// isBarred: while live pods outnumber N, a pod whose program failed stands back for one that made room and did not fail, and a pod that
// made room for those who want its slot. One of the current revision made room for nobody that should have it instead.
func (p *planner) isBarred(pod *Pod) bool {
	switch {
	case p.live <= p.in.Count, p.in.Insist && pod.Name == p.in.Me:
		return false
	case pod.failed() && p.standing.madeRoomFor(pod):
		return true
	}
	return pod.gaveUp() && !p.in.Rollout.Current && p.standing.wants(pod)
}

// standing counts the pods without a slot whose programs have not failed.
type standing struct {
	// fresh are those that gave no slot up.
	fresh int
	// gaveUp are the others, by controller, and gave how many they are in all.
	gaveUp map[string]int
	gave   int
}

// MadeRoom reports whether a pod of another revision than that named me waits, after it gave its slot up, and has not failed.
func MadeRoom(pods []Pod, me string) bool {
	p := newPlanner(Input{Pods: pods, Me: me}, unbounded)
	p.survey()
	pod, ok := p.pods[me]
	return ok && p.standing.madeRoomFor(pod)
}

// survey counts the pods that may want a slot.
func (p *planner) survey() {
	p.standing = standing{gaveUp: map[string]int{}}
	for i := range p.in.Pods {
		pod := &p.in.Pods[i]
		if _, has := p.holds[pod.Name]; has || !pod.Owned || pod.Terminating || pod.locks() || pod.failed() {
			continue
		}
		if !pod.gaveUp() {
			p.standing.fresh++
			continue
		}
		p.standing.gaveUp[pod.Controller]++
		p.standing.gave++
	}
}

// madeRoomFor reports whether a pod of another revision that gave its slot up waits beside pod.
func (s standing) madeRoomFor(pod *Pod) bool { return s.gave > s.gaveUp[pod.Controller] }

// wants reports whether anybody but pod, which gave its slot up, and its like could want a slot.
func (s standing) wants(pod *Pod) bool { return s.fresh > 0 || s.madeRoomFor(pod) }

func older(a, b *Pod) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
}

func (p *planner) decision() Decision {
	d := Decision{Freed: p.freed, Waiting: p.wait, Live: p.live, Scarce: p.scarce, FenceAfter: p.fence, HandOver: p.asking}
	d.Barred, d.Quarantined = p.idle()
	d.Stranded = p.stranded()
	slices.SortFunc(d.Freed, func(a, b Change) int { return cmp.Compare(a.ID, b.ID) })
	d.Given = p.given(d.Freed)
	if p.in.Trust == assignment.Clean && !p.in.Commit && p.next.SameContent(p.in.State) {
		return d
	}
	p.next.Epoch = p.epoch()
	d.Next = &p.next
	return d
}

// stranded reports whether my receipt keeps a slot locked that I do not get.
func (p *planner) stranded() bool {
	me, ok := p.pods[p.in.Me]
	if !ok || !me.locks() {
		return false
	}
	_, has := p.holds[me.Name]
	return !has
}

// idle counts the slots below N that have no holder although somebody waits. It looks at what there is and not at every slot,
// because N may be two billion.
func (p *planner) idle() (barred, quarantined int) {
	busy := make(assignment.Slots, len(p.next.Slots)+len(p.locks))
	for id := range p.next.Slots {
		busy[id] = ""
	}
	for id := range p.locks {
		busy[id] = ""
	}
	ids := busy.IDs()
	below, _ := slices.BinarySearch(ids, p.in.Count)
	for _, s := range p.next.Quarantine.Without(ids, func(s assignment.Span) bool { return p.in.Served[s.Epoch] }) {
		quarantined += max(0, min(s.To+1, p.in.Count)-s.From)
	}
	return min(p.in.Count-below-quarantined, p.barred), quarantined
}

// given returns the slots that have another holder now, in slot order; a slot that was freed may go to
// a new pod with the old one's name. freed is in slot order.
func (p *planner) given(freed []Change) []Change {
	var given []Change
	for _, id := range p.next.Slots.IDs() {
		for len(freed) > 0 && freed[0].ID < id {
			freed = freed[1:]
		}
		anew := len(freed) > 0 && freed[0].ID == id
		if name := p.next.Slots[id]; anew || p.in.State.Slots[id] != name {
			given = append(given, Change{ID: id, Pod: name})
		}
	}
	return given
}

// epoch follows the clock, and exceeds the owner's old epoch and every receipt's, so that it grows
// also when the owner lost its annotations or a clock stepped back.
func (p *planner) epoch() int64 {
	epoch := max(p.in.State.Epoch+1, p.in.Now.UnixMilli())
	for i := range p.in.Pods {
		if r := p.in.Pods[i].Receipt; r != nil {
			epoch = max(epoch, r.Epoch+1)
		}
	}
	return epoch
}
