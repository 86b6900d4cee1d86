package decision

import (
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

// doubles removes pods that run under the same id or number as a pod that began earlier: their owners were merged, or a receipt was changed or removed. It
// never removes the earlier pod, nor the later one while the earlier one is ending.
func (v *view) doubles() {
	numbers := v.earliest()
	for _, p := range v.pods {
		if !p.begun || p.Terminating || p.anothers() {
			continue
		}
		first := numbers[p.machine()]
		if first != nil && first != p || slices.ContainsFunc(v.running[p.id], func(q *pod) bool { return !q.Terminating && q.before(p) }) {
			v.d.Remove = append(v.d.Remove, Removal{Pod: p.Name, ID: p.id, Cause: CauseLater})
		}
	}
}
