package plan

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"sort"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// unbounded is the bound of a planner that has room for everything.
const unbounded = math.MaxInt

// within plans for an owner that has no room for all of the added entries and requests. It keeps the entries of live
// pods, removes those of dead pods, and adds as many new ones as fit. If it does not fit even without new ones, it
// writes nothing.
func within(in Input, added int, large *assignment.TooLargeError) Decision {
	// The search assumes that a plan with a higher bound takes no less room. That is not so if the plan meets a request,
	// which then goes. The search still finds a plan that fits, and the next plan goes on from there.
	past := sort.Search(added+1, func(most int) bool {
		p := newPlanner(in, most)
		return p.fits(p.decide()) != nil
	})
	p := newPlanner(in, max(0, past-1))
	d := p.decide()
	if past == 0 {
		d.Next = nil
	}
	d.TooLarge = large
	return d
}

// fits returns an error if the owner's annotations have no room for the decision. A decision that adds nothing may use
// more room, because it only restores or frees entries.
func (p *planner) fits(d Decision) *assignment.TooLargeError {
	if d.Next == nil {
		return nil
	}
	limit := assignment.SizeLimit
	if p.added() == 0 {
		limit = assignment.RepairLimit
	}
	var large *assignment.TooLargeError
	errors.As(p.in.Room.Check(*d.Next, limit), &large)
	return large
}

// added returns the number of new entries and requests.
func (p *planner) added() int { return p.most - p.left }

// add writes a new entry if there is room for one more.
func (p *planner) add(id int, pod *Pod) bool {
	if !p.takeRoom() {
		return false
	}
	p.assign(id, pod)
	return true
}

// takeRoom uses up the room for one new entry or request. It returns false if there is none.
func (p *planner) takeRoom() bool {
	if p.left == 0 {
		return false
	}
	p.left--
	return true
}

// rank moves the waiters whose programs are known to run to the front if there is no room for all: first the planner,
// then siblings that have shown life. An entry for a pod that never starts would occupy its room for as long as that pod
// lives (rule 5).
func (p *planner) rank(waiters []*Pod) {
	if p.most == unbounded {
		return
	}
	class := func(pod *Pod) int {
		switch {
		case pod.Name == p.in.Me:
			return 0
		case pod.showsLife() && !pod.failed():
			return 1
		}
		return 2
	}
	slices.SortStableFunc(waiters, func(a, b *Pod) int { return cmp.Compare(class(a), class(b)) })
}
