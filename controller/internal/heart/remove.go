package heart

import (
	"cmp"
	"slices"
)

// remove removes pods so that others get their ids. Gated programs cannot stop by themselves, and a Deployment's controller removes no older pod while
// the new one waits for the older one's id.
func (v *view) remove() {
	o := v.w.Owner
	if o.Paused || o.Limit <= 0 || o.Revision == "" {
		return
	}
	c := v.census()
	if c.wanted <= 0 {
		v.above(c)
		return
	}
	if !o.Replaces || !o.Blocks {
		return
	}
	broken, working := c.older(v)
	v.kept = len(broken)+len(working) == 0
	for _, p := range broken[:min(len(broken), c.wanted)] {
		v.d.Remove = append(v.d.Remove, Removal{Pod: p.Name, ID: p.id, Cause: CauseBroken})
	}
	v.crowded = len(working) > 0 && c.without >= o.Limit
	for _, p := range working[:max(0, min(len(working), c.wanted-len(broken), o.Limit-c.without))] {
		v.d.Remove = append(v.d.Remove, Removal{Pod: p.Name, ID: p.id, Cause: CauseOlder, Evict: true})
	}
}

// census counts what removals depend on.
type census struct {
	// wanted is how many pods of the current revision wait, less the slots that come free by themselves.
	wanted int
	// free is the number of slots that no pod has.
	free int
	// without is the number of ids without an available pod. A holder that is of an older revision and not available does not count.
	without int
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
		switch {
		case !has && v.current(p) && !p.Refused && (p.takes() || !p.Assigned && p.Receipt.State != 0 && !p.Terminating):
			waiting++
		case !has:
		case p.Terminating:
			if id < count {
				held[id] = true
				c.without++
				waiting-- // its slot comes free by itself
			}
		default:
			if id < count {
				held[id] = true
			}
			if id < count && v.current(p) && !v.available(p) {
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

// holds returns the slot that the pod locks or is proposed.
func (v *view) holds(p *pod) (id int, has bool) {
	if p.runs || p.Receipt.Locked() {
		return p.id, true
	}
	id, has = v.ids[p.Name]
	return id, has
}

// older returns the controller's pods of older revisions, the highest ids first: those that are not available, and the others.
func (c *census) older(v *view) (broken, working []*pod) {
	slices.SortFunc(c.holders, func(a, b *pod) int { return cmp.Or(b.id-a.id, cmp.Compare(a.Name, b.Name)) })
	for _, p := range c.holders {
		switch {
		case !p.runs || !p.Owned || v.current(p): // one that was relabelled is of no revision
		case v.available(p):
			working = append(working, p)
		default:
			broken = append(broken, p)
		}
	}
	return broken, working
}

// above removes one pod with an id above the count, if a lower id is free and stays free. Kubernetes removed the wrong pod of a scale-down then: it looks
// at the deletion cost only among pods that are equally ready, and of a StatefulSet at the ordinals, which need not be the ids.
func (v *view) above(c census) {
	if c.free <= 0 || c.live > v.w.Owner.Count || c.without-c.free >= v.w.Owner.Limit {
		return
	}
	for _, p := range slices.Backward(c.holders) {
		if p.runs && p.id >= v.w.Owner.Count && v.current(p) && !p.Condemned {
			v.d.Remove = append(v.d.Remove, Removal{Pod: p.Name, ID: p.id, Cause: CauseAbove, Evict: true})
			return
		}
	}
}
