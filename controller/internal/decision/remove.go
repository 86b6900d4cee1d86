package decision

import (
	"cmp"
	"slices"
	"time"
)

// quiet is how long Kubernetes must have removed no older pod before the controller removes one in the presence of a lost pod.
const quiet = 10 * time.Second

// remove removes pods so that others get their ids. Gated programs cannot stop by themselves, and a Deployment's controller removes no older pod while the new
// one waits for the older one's id.
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
	if v.evicts = o.Replaces && (o.Blocks || v.stands(c)); !v.evicts {
		return
	}
	broken, working := c.older(v)
	v.kept = len(broken)+len(working) == 0
	broken, working = slices.DeleteFunc(broken, v.doubled), slices.DeleteFunc(working, v.doubled)
	most := c.wanted
	if !o.Blocks {
		most = 1
	}
	for _, p := range broken[:min(len(broken), most)] {
		v.d.Remove = append(v.d.Remove, Removal{Pod: p.Name, ID: p.id, Cause: CauseBroken})
	}
	v.crowded = len(working) > 0 && c.starting > 0 && c.without >= o.Limit
	most = min(len(working), most-len(broken), o.Limit-c.without)
	if c.lost > 0 && o.Count > 1 {
		most = min(most, c.available-1)
	}
	for _, p := range working[:max(0, most)] {
		v.d.Remove = append(v.d.Remove, Removal{Pod: p.Name, ID: p.id, Cause: CauseOlder, Evict: true})
	}
}

// stands reports whether a lost pod blocks a rolling update in which Kubernetes normally ends older pods by itself. The lost pod has an id and is not
// available, so no older pod is ended and no new one starts.
func (v *view) stands(c census) bool {
	if c.lost == 0 || c.ending > 0 || c.starting > 0 {
		return false
	}
	v.quietAt = v.w.QuietSince.Add(quiet)
	return !v.quietAt.After(v.w.Now)
}

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

// Lost reports whether a Terminating pod has outlived its grace period. Its node may be down, and nothing tells when the pod ends.
func (p Pod) Lost(now time.Time) bool {
	return p.Terminating && !p.LostAt.IsZero() && !p.LostAt.After(now)
}

// holds returns the slot that the pod locks or that the map proposes to it.
func (v *view) holds(p *pod) (id int, has bool) {
	if p.begun || p.Receipt.Locked() {
		return p.id, true
	}
	id, has = v.ids[p.Name]
	return id, has
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

// above removes one pod with an id above the count, if a lower id is free and stays free. That happens when a scale-down deleted a low id: Kubernetes compares
// deletion costs only among equally ready pods, and a StatefulSet goes by ordinals, which may differ from the ids.
func (v *view) above(c census) {
	if c.free <= 0 || c.live > v.w.Owner.Count || c.without-c.free >= v.w.Owner.Limit {
		return
	}
	for _, p := range slices.Backward(c.holders) {
		if p.begun && p.id >= v.w.Owner.Count && v.current(p) && !p.Condemned && !v.doubled(p) {
			v.d.Remove = append(v.d.Remove, Removal{Pod: p.Name, ID: p.id, Cause: CauseAbove, Evict: true})
			return
		}
	}
}

// doubles removes pods that run under the same id as a pod that began earlier: their owners were merged, or a receipt was removed. It never removes the earlier
// pod, nor the later one while the earlier one is ending.
func (v *view) doubles() {
	for _, p := range v.pods {
		if p.begun && !p.Terminating && !p.anothers() && slices.ContainsFunc(v.running[p.id], func(q *pod) bool { return !q.Terminating && q.before(p) }) {
			v.d.Remove = append(v.d.Remove, Removal{Pod: p.Name, ID: p.id, Cause: CauseLater})
		}
	}
}

// doubled reports whether another pod of the controller also runs under the pod's id. Only the later of the two is removed.
func (v *view) doubled(p *pod) bool { return p.begun && len(v.running[p.id]) > 1 }
