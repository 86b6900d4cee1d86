package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/ownership"
)

// Plan returns the owner's next state. It never fails and never blocks. Its cost is O((N + pods) log(N + pods)), and
// log(N) times that if the annotations are full.
func Plan(in Input) Decision {
	p := newPlanner(in, unbounded)
	d := p.decide()
	err := p.fits(d)
	if err == nil {
		return d
	}
	if large := err; d.Partitions.Changed { // the partitions stay as they are, and the slots go on
		in.Partitions.Unchanged = true
		p = newPlanner(in, unbounded)
		d = p.decide()
		if err = p.fits(d); err != nil {
			d = within(in, p.added(), err)
		}
		d.PartitionsTooLarge = large
		return d
	}
	return within(in, p.added(), err)
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
	p.settleStrict()  // strict mode
	p.own()           // rules 7 to 11
	return p.decision()
}

// contested stands in planner.locks for a slot that the receipts of several live pods name. No pod has this name.
const contested = ""

type planner struct {
	in Input
	// most bounds the number of new entries and requests. left is how many more may be added.
	most, left int

	pods map[string]*Pod
	next assignment.State
	// holds maps pod names to ids. It is the inverse of next.Slots.
	holds map[string]int
	// locks maps each slot that live pods' receipts name to that pod, or to contested if there are several.
	locks map[int]string
	freed []Change
	// live is the number of live pods of the owner.
	live int
	// waiting is the number of waiters without a slot, among the planner and its siblings.
	waiting int
	// makingWay is the number of those that must leave free slots to other pods (mustMakeWay).
	makingWay int
	// scarce says that there are fewer free slots than pods that might want one.
	scarce     bool
	demand     demand
	fenceAfter time.Duration
	handOver   HandOver
	partitions ownership.Decision
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
		if pod.Owned && !p.lost(pod) {
			p.live++
		}
	}
	p.fenceAfter = largestFenceAfter(in)
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
		case p.lost(pod):
			p.freed = append(p.freed, Change{ID: id, Pod: name, Cause: CauseLost})
		case pod.gives(id): // one write can serve many pods that give at once
			p.freed = append(p.freed, Change{ID: id, Pod: name, Cause: CauseGiven})
		default:
			p.assign(id, pod)
		}
	}
}

// restoreReceipts locks every slot that a live pod's receipt names. If neither the slot nor the pod has an entry, it adds
// one. In a map that is not clean, these entries are the whole assignment. In a clean map, a pod with a receipt and no
// entry does not act yet, so its receipt does not end a quarantine.
//
// If the receipts of several pods name one slot, one of these pods may act. Nothing here tells which: the receipt that
// came late may have the higher or the lower epoch. So none of them gets an entry. The pod that acts keeps its receipt.
// The others see that the map does not name them and withdraw theirs. A later plan adds an entry for the remaining one.
//
// The receipt of a lost pod locks nothing by itself: in a clean map, who acts has an entry, and its slot is in quarantine after
// that. In any other map it still contests the slot with another receipt, because one of the two pods may act. In a clean map a
// strict pod that has outlived its grace period gets no entry back, because the next planner might take it out again.
func (p *planner) restoreReceipts() {
	lockers := make([]*Pod, 0, len(p.in.Pods))
	var lost []*Pod
	for i := range p.in.Pods {
		pod := &p.in.Pods[i]
		if !pod.locks() {
			continue
		}
		if p.lost(pod) {
			lost = append(lost, pod)
			continue
		}
		lockers = append(lockers, pod)
		if _, locked := p.locks[pod.Receipt.ID]; locked {
			p.locks[pod.Receipt.ID] = contested
		} else {
			p.locks[pod.Receipt.ID] = pod.Name
		}
	}
	for _, pod := range lost {
		if _, locked := p.locks[pod.Receipt.ID]; locked && p.in.Trust != assignment.Clean {
			p.locks[pod.Receipt.ID] = contested
		}
	}
	for _, pod := range lockers {
		id := pod.Receipt.ID
		_, taken := p.next.Slots[id]
		_, has := p.holds[pod.Name]
		switch {
		case taken || has || p.locks[id] != pod.Name:
		case p.in.Trust != assignment.Clean:
			p.assign(id, pod) // the pod may act, so a restored map has all of these entries, whatever room there is
		case !p.quarantined(id) && (!pod.strict() || !pod.overdue(p.in.Now)):
			p.add(id, pod)
		}
	}
	if p.in.Trust != assignment.Clean {
		p.freeUnconfirmed()
	}
}

// freeUnconfirmed notes as freed the entries of a map that is not clean which no receipt confirms.
func (p *planner) freeUnconfirmed() {
	for _, id := range p.in.State.Slots.IDs() {
		name := p.in.State.Slots[id]
		if p.next.Slots[id] == name {
			continue
		}
		cause := CauseUnsealed
		if pod, alive := p.pods[name]; !alive {
			cause = CauseDead
		} else if p.lost(pod) {
			cause = CauseLost
		}
		p.freed = append(p.freed, Change{ID: id, Pod: name, Cause: cause})
	}
}

// give removes the planner's own entry.
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

// serveWaiters gives the free slots below N to the planner and its siblings. Pods of another revision plan for
// themselves; they may not even run idalloc. If slots are scarce, siblings that have not shown life plan for themselves,
// too.
func (p *planner) serveWaiters() {
	for before := -1; before < len(p.holds); { // other pods need not make way for a pod that now has a slot
		before = len(p.holds)
		p.serveOnce()
	}
}

func (p *planner) serveOnce() {
	p.waiting, p.makingWay = 0, 0
	p.demand = p.countDemand()
	waiters := p.waiters()
	p.rank(waiters)
	p.scarce = p.openSlots() < p.podsWithoutSlot()
	if me := p.pods[p.in.Me]; me != nil && p.in.Intent == Claim && p.mustMakeWay(me) {
		// The planner leaves free slots to other pods, so it gives none to its siblings, which are of its revision.
		// Siblings whose programs run plan for themselves.
		p.waiting += len(waiters)
		return
	}
	rest := waiters[:0:0]
	for _, pod := range waiters {
		switch {
		case pod.Ordinal < 0 || pod.Ordinal >= p.in.Count:
			rest = append(rest, pod)
		case p.free(pod.Ordinal, pod):
			if !p.add(pod.Ordinal, pod) {
				p.waiting++
			}
		case p.occupied(pod.Ordinal):
			rest = append(rest, pod)
		default:
			p.waiting++
		}
	}
	if p.scarce {
		running := p.knownToRun(rest)
		p.waiting += len(rest) - len(running)
		rest = running
	}
	id := 0
	for _, pod := range rest {
		if id = p.nextFree(id, pod); id >= p.in.Count || !p.add(id, pod) {
			p.waiting++
		}
	}
}

// occupied reports whether the slot has a live holder that is not Terminating. The pod that has this ordinal takes another
// slot then. This happens after somebody raises a Job's parallelism or changes the start of a StatefulSet's ordinals.
func (p *planner) occupied(id int) bool {
	holder, ok := p.pods[p.next.Slots[id]]
	return ok && !holder.Terminating
}

// knownToRun returns the waiters whose programs are known to run: the planner first, then the siblings that have shown
// life, in their order. A pod that never starts would keep its slot unused for as long as it lives (rule 5).
func (p *planner) knownToRun(waiters []*Pod) []*Pod {
	running := make([]*Pod, 0, len(waiters))
	for _, pod := range waiters {
		switch {
		case pod.Name == p.in.Me:
			running = slices.Insert(running, 0, pod)
		case pod.showsLife() && !pod.failed(): // a program that fails may not run between two tries
			running = append(running, pod)
		}
	}
	return running
}

// free reports whether the slot may go to the pod, which has no slot.
func (p *planner) free(id int, pod *Pod) bool {
	if _, taken := p.next.Slots[id]; taken || p.quarantined(id) || pod.gives(id) {
		return false
	}
	_, locked := p.locks[id]
	return !locked
}

// nextFree returns the first slot from id on that the pod may have. A result of N or more means that there is none. It
// passes a quarantine in one step, because N may be two billion.
func (p *planner) nextFree(id int, pod *Pod) int {
	for id < p.in.Count && !p.free(id, pod) {
		if span, ok := p.next.Quarantine.Span(id); ok && !p.in.Served[span.Epoch] {
			id = span.To
		}
		id++
	}
	return id
}

// waiters returns those pods, oldest first, that have no entry and no receipt for a slot, among the planner and its
// siblings. A relabelled pod does not belong to the owner any more. It keeps a slot that it has, but it gets no new one,
// because another pod runs in its place.
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
		if p.mustMakeWay(pod) {
			p.waiting++
			p.makingWay++
			continue
		}
		waiters = append(waiters, pod)
	}
	slices.SortFunc(waiters, older)
	return waiters
}

func older(a, b *Pod) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
}

func (p *planner) decision() Decision {
	d := Decision{
		Freed: p.freed, Waiting: p.waiting, Live: p.live, Scarce: p.scarce, FenceAfter: p.fenceAfter, HandOver: p.handOver, Partitions: p.partitions,
	}
	d.Reserved, d.Quarantined = p.unfilled()
	d.Overdue = p.overdue()
	d.Stranded = p.stranded()
	slices.SortFunc(d.Freed, func(a, b Change) int { return cmp.Compare(a.ID, b.ID) })
	d.Filled = p.filled(d.Freed)
	if p.in.Trust == assignment.Clean && !p.in.NeedsWrite && !p.partitions.Changed && p.next.SameContent(p.in.State) {
		return d
	}
	p.next.Epoch = p.epoch()
	if p.partitions.Changed && p.next.Partitions != nil {
		p.next.Partitions.Epoch = p.next.Epoch
	}
	d.Next = &p.next
	return d
}

// overdue returns the slots of pods that would be lost by now if they were strict, as far as wall clocks tell.
func (p *planner) overdue() []Change {
	var overdue []Change
	for id, name := range p.next.Slots {
		if pod := p.pods[name]; id < p.in.Count && pod.overdue(p.in.Now.Add(-LostAfter)) && !pod.MayBeLost() {
			overdue = append(overdue, Change{ID: id, Pod: name})
		}
	}
	slices.SortFunc(overdue, func(a, b Change) int { return cmp.Compare(a.ID, b.ID) })
	return overdue
}

// stranded reports whether the planner's receipt locks a slot that the planner does not get.
func (p *planner) stranded() bool {
	me, ok := p.pods[p.in.Me]
	if !ok || !me.locks() {
		return false
	}
	_, has := p.holds[me.Name]
	return !has
}

// unfilled counts the slots below N without a holder: those that waiters must leave to other pods, and those in quarantine. It
// does not visit every slot, because N may be two billion.
func (p *planner) unfilled() (reserved, quarantined int) {
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
	return min(p.in.Count-below-quarantined, p.makingWay), quarantined
}

// filled returns the slots that have a new holder, in slot order. A freed slot has one even if the pod's name is the same:
// a new pod may have the old one's name. freed must be in slot order.
func (p *planner) filled(freed []Change) []Change {
	var filled []Change
	for _, id := range p.next.Slots.IDs() {
		for len(freed) > 0 && freed[0].ID < id {
			freed = freed[1:]
		}
		anew := len(freed) > 0 && freed[0].ID == id
		if name := p.next.Slots[id]; anew || p.in.State.Slots[id] != name {
			filled = append(filled, Change{ID: id, Pod: name})
		}
	}
	return filled
}

// epoch returns the next epoch. It follows the clock, and it exceeds the owner's epoch and every receipt's. So it grows
// even if the owner has lost its annotations, or if a clock has stepped back.
func (p *planner) epoch() int64 {
	epoch := max(p.in.State.Epoch+1, p.in.Now.UnixMilli())
	for i := range p.in.Pods {
		if r := p.in.Pods[i].Receipt; r != nil {
			epoch = max(epoch, r.Epoch+1)
		}
	}
	return epoch
}
