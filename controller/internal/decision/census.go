package decision

import (
	"cmp"
	"slices"
)

// census counts the pods and ids on which removals depend.
type census struct {
	// wanted is how many pods of the current revision wait, minus the slots that become free by themselves.
	wanted int
	// free is the number of slots that no pod has.
	free int
	// without is the number of ids without an available pod. It does not count unavailable holders of older revisions, nor lost pods.
	without int
	// starting counts the holders of the current revision that are not available, ending those that are Terminating, lost those that have outlived their grace
	// periods, and available those that are available.
	starting, ending, lost, available int
	// live is the number of the owner's pods that are not Terminating.
	live    int
	holders []*pod
}

func (v *view) census() (c census) {
	count := v.w.Owner.Count
	held := map[int]bool{}
	waiting := 0
	for _, p := range v.pods {
		if p.Owned && !p.Terminating {
			c.live++
		}
		id, has := v.holds(p)
		if has && id < count {
			held[id] = true
		}
		switch {
		case !has && v.current(p) && !p.Refused && (p.canTake() || !p.Assigned && p.Receipt.State != 0 && !p.Terminating):
			waiting++
		case !has:
		case p.Lost(v.w.Now):
			c.lost++
		case p.Terminating:
			if c.ending++; id < count {
				c.without++
				waiting-- // its slot becomes free by itself
			}
		default:
			if v.available(p) {
				c.available++
			} else if id < count && v.current(p) {
				c.starting++
				c.without++
			}
			c.holders = append(c.holders, p)
		}
	}
	c.free = count - len(held)
	c.without += max(0, c.free)
	c.wanted = waiting - c.free
	return c
}

// older returns the controller's pods of older revisions, highest ids first: broken are not available, working are.
func (c *census) older(v *view) (broken, working []*pod) {
	slices.SortFunc(c.holders, func(a, b *pod) int { return cmp.Or(b.id-a.id, cmp.Compare(a.Name, b.Name)) })
	for _, p := range c.holders {
		switch {
		case !p.begun || !p.Owned || v.current(p): // a relabelled pod has no revision
		case v.available(p):
			working = append(working, p)
		default:
			broken = append(broken, p)
		}
	}
	return broken, working
}
