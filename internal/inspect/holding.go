package inspect

import (
	"cmp"
	"slices"
	"strconv"
)

// holding is a snapshot with the pods that lock each slot.
type holding struct {
	snapshot
	// lockers are the live pods whose receipts lock a slot, by slot. Of several, the one whose receipt is older comes first.
	lockers map[int][]pod
}

func (n snapshot) holding() holding {
	h := holding{snapshot: n, lockers: map[int][]pod{}}
	for _, p := range n.pods {
		if id := p.Receipt.Slot(); id >= 0 && p.live() && !n.left(p) {
			h.lockers[id] = append(h.lockers[id], p)
		}
	}
	for _, lockers := range h.lockers {
		slices.SortFunc(lockers, func(a, b pod) int {
			return cmp.Or(a.written.Compare(b.written), a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
		})
	}
	return h
}

// holder returns the live pod that locks the slot or, if none does, that is to have it. Of several with a lock, it is the one that the map
// names, or the first. The name is empty if there is none.
func (h holding) holder(id int) (name string, locks bool) {
	named := h.owner.Record.State.Slots[id]
	lockers := h.lockers[id]
	switch {
	case slices.ContainsFunc(lockers, func(p pod) bool { return p.Name == named }):
		return named, true
	case len(lockers) > 0:
		return lockers[0].Name, true
	case h.proposed(id):
		return named, false
	}
	return "", false
}

// is reports whether the pod is the one that locks the slot.
func (h holding) is(p pod, id int) bool {
	name, locks := h.holder(id)
	return locks && name == p.Name
}

// number returns an id or a number of something as a text.
func number(n int) string { return strconv.Itoa(n) }
