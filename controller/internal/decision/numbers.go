package decision

import (
	"cmp"
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// A machine number is a second lock in the receipt of a gated pod. T2 writes it with the slot, T3 refuses it like the slot if another pod has it, and Begin
// publishes the number that the receipt has. So no two live pods have one number, whatever their templates say.

// machine returns the number under which the pod's program runs, or which the pod locks, or 0. Agents and peers have no numbers, whatever their receipts say.
func (p *pod) machine() int {
	switch {
	case !p.Assigned:
	case p.begun && p.was.ID == p.id:
		return p.was.Number
	case p.Receipt.State == receipt.Locks:
		return p.Receipt.Number
	}
	return 0
}

// number returns the number that T2 locks for the pod with this id, or 0 if the pod asks for none.
func (v *view) number(p *pod, id int) int {
	if p.FirstNumber == 0 {
		return 0
	}
	number := v.firstNumber() + id
	if q := v.earliest()[number]; q != nil && q.UID != p.UID { // two first numbers are in force: another leader did not see a pod
		return firstOf(number, q.id) + id
	}
	return number
}

// firstNumber returns the number of id 0. That of live pods stays in force, so a change waits until no live pod has a number. Then the pods of the current
// revision decide. The result matters for liveness alone: T3 protects each number.
func (v *view) firstNumber() int {
	if v.first > 0 {
		return v.first
	}
	var wants *pod
	for _, p := range v.pods {
		if first := firstOf(p.machine(), p.id); first > 0 && (p.begun || v.first == 0) {
			if v.first = first; p.begun {
				return v.first
			}
		}
		if p.FirstNumber > 0 && p.canTake() && (wants == nil || v.current(p) && !v.current(wants)) {
			wants = p
		}
	}
	for _, l := range v.w.Locks { // T3 may show pods that the view does not have
		if v.first == 0 && l.Runs == l.Receipt.Slot() && v.named[l.Pod] == nil {
			v.first = firstOf(cmp.Or(l.Number, l.Receipt.Number), l.Runs)
		}
	}
	if v.first == 0 && wants != nil {
		v.first = wants.FirstNumber
	}
	return v.first
}

// firstOf returns the number of id 0 if that of id is number, or 0 if there is none.
func firstOf(number, id int) int {
	if first := number - id; number > 0 && id >= 0 && first > 0 && first <= receipt.MaxFirst {
		return first
	}
	return 0
}

// shared reports whether another pod locks the pod's number, or runs under it.
func (v *view) shared(p *pod) bool {
	number := p.machine()
	return number > 0 && (slices.ContainsFunc(v.w.Locks, func(l Lock) bool {
		return l.UID != p.UID && (l.Receipt.LocksNumber(number) || l.Number == number)
	}) || slices.ContainsFunc(v.pods, func(q *pod) bool { return q.begun && q.UID != p.UID && q.machine() == number }))
}

// earliest returns, for each number, the pod that began first of those that run under it and are not ending.
func (v *view) earliest() map[int]*pod {
	if v.numbers != nil {
		return v.numbers
	}
	v.numbers = map[int]*pod{}
	for _, p := range v.pods {
		if n := p.machine(); n > 0 && p.begun && !p.Terminating && (v.numbers[n] == nil || p.before(v.numbers[n])) {
			v.numbers[n] = p
		}
	}
	return v.numbers
}

// Ends is what the controller has seen of ids whose pods have ended. The zero value is that of a process that has seen nothing yet.
type Ends struct {
	// Since is when the owner was first seen. An id whose last pod was not seen counts as free since then.
	Since time.Time
	// At is when the last pod of an id ended, and held are the ids of pods that have begun.
	At   map[int]time.Time
	held map[int]bool
}

// See records which ids the pods have now.
func (e *Ends) See(pods []Pod, now time.Time) {
	was := e.held
	if e.held = map[int]bool{}; e.At == nil {
		e.At, e.Since = map[int]time.Time{}, now
	}
	for _, p := range pods {
		if q := read(p); q.begun {
			e.held[q.id] = true
			delete(e.At, q.id)
		}
	}
	for id := range was {
		if !e.held[id] {
			e.At[id] = now
		}
	}
}

// rested returns when the id has rested for this long.
func (e *Ends) rested(id int, after time.Duration) time.Time {
	at, seen := e.At[id]
	if !seen {
		at = e.Since
	}
	return at.Add(after)
}

// Rest is an id that a pod waits for, and that rests until then.
type Rest struct {
	ID    int
	Until time.Time
}

// rests reports whether the id still rests. It records that, and when to decide again.
func (v *view) rests(id int) bool {
	until := v.w.Ends.rested(id, v.w.Owner.ReuseAfter)
	if v.w.Owner.ReuseAfter == 0 || !until.After(v.w.Now) {
		return false
	}
	v.d.Rests = append(v.d.Rests, Rest{ID: id, Until: until})
	return true
}
