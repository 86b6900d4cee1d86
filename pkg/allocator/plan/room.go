package plan

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"sort"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// unbounded is a planner's bound where there is room for all.
const unbounded = math.MaxInt

// within plans where not all fits that was to be added: the entries of live pods stay and those of dead ones go, and of the new
// ones as many are written as there is room for. If not even what is not new fits, nothing is written.
func within(in Input, added int, large *assignment.TooLargeError) Decision {
	// A plan with a higher bound writes all that one with a lower bound does. It may take less room all the same, where a request is met: then
	// what is found fits, too, and the next plan goes on from there.
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

// fits returns an error when the owner's annotations have no room for the decision. One that adds nothing may use more, because it puts
// back what was there, or frees what nobody has.
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

// added is the number of entries and requests that are new.
func (p *planner) added() int { return p.most - p.left }

// add writes a new entry, if one more may be written.
func (p *planner) add(id int, pod *Pod) bool {
	if !p.room() {
		return false
	}
	p.assign(id, pod)
	return true
}

// room takes one more new entry or request off what may be written.
func (p *planner) room() bool {
	if p.left == 0 {
		return false
	}
	p.left--
	return true
}

// rank puts those first whose programs are known to run, where there is no room for all: me, then siblings that have shown life. An
// entry for a pod that never starts keeps the room from another one for as long as that pod lives (rule 5).
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
