package proposal

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"slices"
	"sort"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

const (
	// unbounded is the bound of a planner with room for everything.
	unbounded = math.MaxInt
	// frees is the bound of a planner without room for any new entry, not even for a locked slot.
	frees = -1
)

// Plan returns the owner's next state. It never fails and never blocks. Its cost is O((N + pods) log(N + pods)), and log(N) times that if the annotations
// are full.
//
// If there is no room for everything new, the plan is the largest one that fits. The entries of live pods stay, and those of dead pods go. If not even the
// slots that receipts lock fit, the map omits them, because the receipts are enough. If there is no room for the row, the row stays as it is, and slots are
// still planned.
func Plan(in Input) Decision {
	plan := func(most int) *planner {
		p := newPlanner(in, most)
		p.decide()
		return p
	}
	p := plan(unbounded)
	large := p.fits()
	if large == nil {
		return p.d
	}
	if p.d.Partitions.Changed {
		in.Partitions.Unchanged = true
		d := Plan(in)
		d.PartitionsTooLarge = large
		return d
	}
	// The search assumes that a plan with a higher bound needs at least as much room. A request that is met breaks that, because it goes. The search still
	// finds a plan that fits, and the next plan continues from there.
	past := sort.Search(p.added()+1, func(most int) bool { return plan(most).fits() != nil })
	in.Partitions.Unchanged = in.Partitions.Unchanged || past == 0
	p = plan(past - 1) // frees, if nothing else fits
	if p.d.TooLarge = large; p.d.WhyNot != "" {
		p.d.WhyNot = WhyNoRoom
	}
	return p.d
}

type planner struct {
	in Input
	// most bounds the number of new entries and requests. left is how many more may be added.
	most, left int
	// me is the planner's pod, nil for a sweep.
	me *Pod
	// alive are the live pods, and pods finds them by name. lost are the names of pods that count as gone (rule 1).
	alive []*Pod
	pods  map[string]*Pod
	lost  map[string]bool
	// lockers maps each locked slot to the pod that locks it, or to nil if there are several.
	lockers map[int]*Pod
	// holds maps names of pods to slots. It is the inverse of next.Slots.
	holds map[string]int
	next  assignment.State
	// wanting counts the pods that want a slot, by rank.
	wanting [failed + 1]int
	// open is the number of free slots below the count. No slot below lowest is free. The count may be two billion.
	open, lowest int
	d            Decision
}

func newPlanner(in Input, most int) *planner {
	p := &planner{
		in: in, most: most, left: max(0, most), open: in.Count, alive: make([]*Pod, 0, len(in.Pods)),
		pods: make(map[string]*Pod, len(in.Pods)), lost: map[string]bool{},
		lockers: make(map[int]*Pod, len(in.Pods)), holds: make(map[string]int, len(in.Pods)),
		next: assignment.State{Slots: make(assignment.Slots, min(in.Count, len(in.Pods))), Handover: assignment.Slots{}},
	}
	for i := range in.Pods {
		pod := &in.Pods[i]
		if pod.Receipt.Strict && pod.overdue(in.Now) {
			p.lost[pod.Name] = true
			continue
		}
		p.alive, p.pods[pod.Name] = append(p.alive, pod), pod
		if pod.Owned {
			p.d.Live++
		}
		if id := pod.Receipt.Slot(); id != receipt.NoID {
			if (!pod.Owned || pod.Foreign) && !pod.Terminating {
				p.d.Foreign = insert(p.d.Foreign, Change{ID: id, Pod: pod.Name})
			}
			if _, several := p.lockers[id]; several {
				pod = nil
			} else if id < in.Count {
				p.open--
			}
			p.lockers[id] = pod
		}
	}
	p.me = p.pods[in.Me]
	return p
}

func (p *planner) decide() {
	p.keepEntries()
	p.keepRequests()
	p.serveRequests()
	p.serveWaiters()
	p.dropRequests()
	p.ask()
	p.own()
	p.conclude()
}

// keepEntries records who locks a slot (rule 1), and carries over the other entries that may stay (rule 2).
func (p *planner) keepEntries() {
	for id, pod := range p.lockers {
		if pod != nil && (p.most > frees || p.in.State.Slots[id] == pod.Name) {
			p.assign(id, pod)
		}
	}
	for _, id := range p.in.State.Slots.IDs() {
		name := p.in.State.Slots[id]
		if cause := p.contradiction(id, name); cause != "" {
			p.d.Freed = append(p.d.Freed, Change{ID: id, Pod: name, Cause: cause})
		} else {
			p.assign(id, p.pods[name])
		}
	}
}

// contradiction returns why the entry must go. It is empty if the entry stays.
func (p *planner) contradiction(id int, name string) Cause {
	pod, lives := p.pods[name]
	_, locked := p.lockers[id]
	other, has := p.holds[name]
	switch {
	case p.lost[name]:
		return CauseLost
	case !lives:
		return CauseDead
	case pod.Receipt.State == receipt.GaveUp:
		return CauseGiven
	case pod.Receipt.Slot() == id:
		// It stays even if other receipts also lock the slot.
	case pod.Receipt.Slot() != receipt.NoID || locked || (has && other != id):
		return CauseLocked
	case !pod.Receipt.Locked() && (pod.Terminating || id >= p.in.Count):
		return CauseUnused
	}
	return ""
}

func (p *planner) assign(id int, pod *Pod) {
	if id < p.in.Count && p.free(id) {
		p.open--
	}
	p.next.Slots[id] = pod.Name
	p.holds[pod.Name] = id
}

// add writes a new entry for a waiter if there is room for one more.
func (p *planner) add(id int, pod *Pod) bool {
	if p.left == 0 {
		return false
	}
	p.left--
	p.assign(id, pod)
	return true
}

// added returns the number of new entries and requests. An entry that only repeats a lock does not count.
func (p *planner) added() int { return max(0, p.most) - p.left }

// fits returns an error if the owner's annotations have no room for the plan. A plan that adds nothing may use more room.
func (p *planner) fits() *assignment.TooLargeError {
	if p.d.Next == nil {
		return nil
	}
	limit := assignment.SizeLimit
	if p.added() == 0 {
		limit = assignment.RepairLimit
	}
	var large *assignment.TooLargeError
	errors.As(p.in.Room.Check(*p.d.Next, limit), &large)
	return large
}

// free reports whether no pod has the slot.
func (p *planner) free(id int) bool {
	_, taken := p.next.Slots[id]
	_, locked := p.lockers[id]
	return !taken && !locked
}

// insert keeps changes in order. Sorting structs would add 9 KB to each pod's program.
func insert(changes []Change, c Change) []Change {
	i, _ := slices.BinarySearchFunc(changes, c, func(a, b Change) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Pod, b.Pod)) })
	return slices.Insert(changes, i, c)
}

// conclude records what to write, and how it differs from what was read.
func (p *planner) conclude() {
	for _, id := range p.next.Slots.IDs() {
		name := p.next.Slots[id]
		if p.in.State.Slots[id] != name {
			p.d.Filled = append(p.d.Filled, Change{ID: id, Pod: name})
		}
		if id < p.in.Count && p.pods[name].overdue(p.in.Now) {
			p.d.Overdue = append(p.d.Overdue, Change{ID: id, Pod: name})
		}
	}
	p.d.WhyNot = p.whyNot()
	was := p.in.State
	if p.d.Partitions.Changed || !maps.Equal(p.next.Slots, was.Slots) || !maps.Equal(p.next.Handover, was.Handover) {
		p.d.Next = &p.next
	}
}

// whyNot returns why the planner has no slot.
func (p *planner) whyNot() WhyNot {
	if _, has := p.holds[p.in.Me]; has || p.me == nil {
		return ""
	}
	h, scarce, rank := p.d.HandOver, p.d.Live > p.in.Count, p.me.rank()
	_, asks := p.next.Handover.Of(p.in.Me)
	switch {
	case asks:
		return WhyAsked
	case rank == failed && scarce:
		return WhyFailed
	case rank == gaveUp && scarce && h.Limit == 0:
		return WhyGaveUp
	case h.Full():
		return WhyLimit
	case h.Older > 0 && h.Able == 0:
		return WhyKept
	}
	return WhyNotFree
}
