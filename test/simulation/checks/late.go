package checks

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

const (
	// unlocks is how long a receipt may lock a partition whose work has stopped, or has not begun: a few requests.
	unlocks = soonEnough + 20*time.Second
	// tells is how long what is published may show other stops than those that are asked for.
	tells = soonEnough + 15*time.Second
	// forgets is how long the owner may name what is dead: ten seconds, a turn to plan, and requests.
	forgets = 10*time.Second + soonEnough + 30*time.Second
	// takesOver is how long no pod may work on a partition although an id could: the owner before it was gone for failover-after, a holder planned
	// in vain just before, and it planned and took.
	takesOver = assignment.DefaultFailoverAfter + soonEnough + 95*time.Second
	// takesOverTold is the same if the controller plans for all, which has no turns.
	takesOverTold = assignment.DefaultFailoverAfter + soonEnough + 30*time.Second
	// gives is how long what a program that ended had may stay its own: its requests were on their way already.
	gives = soonEnough + 10*time.Second
	// mostAMinute is how many requests a process makes in any minute at most, whatever others do. What is undone is done again after 0.1 s, 0.2 s and so
	// on up to 10 s, and so is what fails, after 0.05 s at first: about a dozen tries in the first minute, each with a few requests.
	mostAMinute = 300
	// renewals is how many more it makes in strict mode in each fence-after, with a few that come to nothing.
	renewals = 20
	// mostProposals is how many of these are writes of the owner. A controller makes more for each pod that is made: it names that pod, and takes out
	// the one before it. Beside peers it lists pods whenever it hears of one.
	mostProposals, ofEachPod, askedForEachPod = 60, 2, 12
)

// span is when something began and was seen last.
type span struct{ first, last time.Duration }

// calls is how many requests a process had made at a moment.
type calls struct {
	at           time.Duration
	n, proposals int
}

// checkPace reports a process that has made too many requests within a minute.
func (g *progress) checkPace() {
	now := g.w.Now()
	for _, p := range g.w.Running() {
		g.calls[p] = append(g.calls[p], calls{now, p.Calls, p.Proposals})
		seen := g.calls[p]
		first, _ := slices.BinarySearchFunc(seen, now-time.Minute, func(c calls, at time.Duration) int { return int(c.at - at) })
		seen = seen[first:]
		most := mostAMinute
		proposals := mostProposals
		if p.Controls {
			pods := g.madeSince(now - time.Minute)
			most, proposals = mostOfController+askedForEachPod*pods, mostProposals+ofEachPod*pods
		}
		if f := p.FenceAfter; f > 0 {
			most += int(time.Minute/f+1) * renewals
		}
		if made := p.Calls - seen[0].n; made > most {
			g.judge.reportf(bounded, "%s made more than %d requests within a minute", p.ID, most)
		}
		if made := p.Proposals - seen[0].proposals; made > proposals {
			g.judge.reportf(bounded, "%s wrote the owner more than %d times within a minute", p.ID, proposals)
		}
		g.calls[p] = seen
	}
}

// madeSince is how many pods were made since then.
func (g *progress) madeSince(then time.Duration) int {
	first, _ := slices.BinarySearch(g.made, then)
	return len(g.made) - first
}

// stopsLate is what a process published and its receipt do not say of the partitions on which its work has stopped, or is to.
func (g *progress) stopsLate(p *world.Process) map[string]time.Duration {
	out := map[string]time.Duration{}
	v := g.w.Server.Get(object.Pods, p.Pod)
	if v == nil || object.UID(v.Object) != p.UID || !p.Launched || !p.Divides() || g.judge.exposed(p) || object.Terminating(v.Object) {
		return out
	}
	if asked := g.judge.says.stopping(p); p.Shown.Assigned() && !p.Shown.Partitions.Stopping().Equal(asked) {
		out[fmt.Sprintf("asks its work on %s to stop, and shows that %s is to", asked, p.Shown.Partitions.Stopping())] = tells
	}
	own := g.judge.receipt(v)
	hangs := p.Belief() != nil && slices.ContainsFunc(g.judge.says.stops[p], func(s allocator.Stop) bool { return s.All }) // it keeps what it has until all has stopped
	if own.State != receipt.Locks || p.Stubborn() || p.FenceAfter > 0 && g.w.Profile.Mixed || hangs {
		return out
	}
	works := p.Working()
	for k := range own.Share.Partitions.Minus(p.Shown.Partitions.Owned()).All() {
		if _, on := works[k]; !on {
			out[fmt.Sprintf("does not work on partition %d, nor is it to, and locks it", k)] = unlocks
		}
	}
	return out
}

// idle are the partitions that no pod works on although the holder of an id could.
func (g *progress) idle() map[string]time.Duration {
	owner := g.owner
	if !g.w.Profile.Divides(world.Template(owner.Object)) {
		return nil
	}
	wish := assignment.DecodeWish(owner.Annotations())
	now := fmt.Sprint(owner.Count(), wish, g.record.State.Slots)
	if now != g.was {
		g.was, g.moved = now, g.w.Now()
	}
	worked, able, bound := map[int]bool{}, false, takesOverTold
	for _, p := range g.w.Processes {
		for k := range p.Working() {
			worked[k] = true
		}
		v := g.w.Server.Get(object.Pods, p.Pod)
		if !p.Runs() || v == nil {
			continue
		}
		switch {
		case !world.IsAgent(v.Object):
			bound = takesOver
		case g.deaf():
			return nil
		}
		if p.Stubborn() || g.w.IsPaused(p.Pod) || p.Pod != "" && !p.Divides() || g.judge.receipt(v).Failures() > 0 {
			return nil // it keeps partitions from moving, or rests
		}
		b := p.Belief()
		able = able || b != nil && b.ID < owner.Count() && !g.w.IsDeaf(p, soonEnough)
	}
	if _, err := placement.Named(wish.Strategy); !able || err != nil && wish.Strategy != "" || !wish.HasCount || len(wish.Problems) > 0 {
		return nil
	}
	out := map[string]time.Duration{}
	for k := range wish.Count {
		if worked[k] || g.w.Hangs[k] || g.lockedInVain(k) {
			continue
		}
		out[fmt.Sprintf("has no pod work on partition %d (as it is since %s)", k, g.moved.Round(time.Second))] = bound + g.leaseTime()
	}
	return out
}

// lockedInVain reports whether a pod locks a partition, or is to have it, whose program does not run, or that is on its way out.
func (g *progress) lockedInVain(k int) bool {
	return slices.ContainsFunc(g.w.Server.Objects(object.Pods), func(v *server.Version) bool {
		r, p := g.judge.receipt(v), g.w.LastOf(v)
		stuck := p == nil || !p.Runs() || !p.Launched || object.Terminating(v.Object) || !world.InWorkload(v.Object)
		return stuck && !object.Ended(v.Object) && (!r.LocksOf(placement.Of(k)).Empty() || r.State == receipt.Locks && g.owns(r.Share.ID, k))
	})
}

// owns reports whether the row gives a partition to an id.
func (g *progress) owns(id, k int) bool {
	row := g.record.State.Row
	return row != nil && row.Owners[id].Contains(k)
}

// able reports whether a process runs that can plan for the owner.
func (g *progress) able() bool {
	return g.controlled() || slices.ContainsFunc(g.w.Running(), func(p *world.Process) bool {
		v := g.w.Server.Get(object.Pods, p.Pod)
		return v != nil && !p.Assigned && !world.IsAgent(v.Object) && object.UID(v.Object) == p.UID && p.Launched && !object.Terminating(v.Object) && world.InWorkload(v.Object) &&
			g.w.Belongs(v, g.owner) && !g.w.IsDeaf(p, soonEnough)
	})
}

// deadNames are the pods, ids and Leases that the owner has although nothing is left of them.
func (g *progress) deadNames() map[string]time.Duration {
	if !g.able() {
		return nil
	}
	var dead []string
	vain := time.Duration(0)
	for id, name := range g.record.State.Slots {
		switch v := g.w.Server.Get(object.Pods, name); {
		case v == nil || object.Ended(v.Object):
			dead = append(dead, strconv.Itoa(id)+":"+name)
			vain = max(vain, g.ending[name].last-g.ending[name].first)
		case !object.Terminating(v.Object):
			delete(g.ending, name)
		case g.ending[name].last == 0:
			g.ending[name] = span{g.w.Now(), g.w.Now()}
		default:
			g.ending[name] = span{g.ending[name].first, g.w.Now()}
		}
	}
	out := map[string]time.Duration{}
	if slices.Sort(dead); len(dead) > 0 {
		out["names in its map the dead "+strings.Join(dead, ", ")] = forgets
		if !g.controlled() { // the status of the owner does not tell peers that a Terminating pod is gone: they look after twice the time each time
			out["names in its map the dead "+strings.Join(dead, ", ")] += vain
		}
	}
	n := g.owner.Count()
	if row := g.record.State.Row; row != nil {
		for _, id := range row.Owners.IDs() {
			if id >= n && len(g.judge.lockers(id)) == 0 {
				out[fmt.Sprintf("has a row of id %d, which no pod has", id)] = forgets
			}
		}
	}
	for _, v := range g.w.Server.Objects(object.Leases) {
		labels := v.Labels() // without the owner's no pod finds it, or takes it for this owner's: those of an earlier one stay
		id, err := strconv.Atoi(labels[receipt.IDLabel])
		if err == nil && labels[receipt.OwnerLabel] == assignment.OwnerLabelValue(g.owner.Kind.Name+"/"+g.owner.Name) && id >= n && len(g.judge.lockers(id)) == 0 && g.anyStrict() {
			out["has the Lease "+v.Name+" of a slot that it does not have"] = forgets + g.leaseTime()
		}
	}
	return out
}

// anyStrict reports whether a process runs in strict mode under the owner and hears of the count: others may not touch Leases, and a process that works under
// a former owner knows nothing of them.
func (g *progress) anyStrict() bool {
	return slices.ContainsFunc(g.w.Running(), func(p *world.Process) bool {
		v := g.w.Server.Get(object.Pods, p.Pod)
		return p.FenceAfter > 0 && p.Belief() != nil && !g.w.IsDeaf(p, soonEnough) && v != nil && g.judge.receipt(v).State == receipt.Locks
	})
}

// leftBy is what a pod still has whose program was told to end when all was well, and has ended for good, while the pod lives.
func (g *progress) leftBy(v *server.Version) map[string]time.Duration {
	p := g.w.LastOf(v)
	ended := !world.IsAssigned(v.Object) && g.w.IsSpent(v) && p != nil && p.Ended && !p.Dead && p.Launched && p.TermAt > 0
	if !ended || g.troubled > p.TermAt-aftermath || object.Ended(v.Object) || g.judge.changed[world.PodKey(v.Name, object.UID(v.Object))] {
		return nil
	}
	out := map[string]time.Duration{}
	if r := g.judge.receipt(v); r.Locked() {
		out[fmt.Sprintf("has ended and locks slot %d", r.Share.ID)] = gives
	}
	if id, named := g.record.State.Slots.Of(v.Name); named {
		out[fmt.Sprintf("has ended and is named for slot %d", id)] = forgets
	}
	for _, l := range g.w.Server.Objects(object.Leases) {
		if _, uid, _ := strings.Cut(object.Text(l.Object, "spec", "holderIdentity"), "/"); uid == object.UID(v.Object) {
			out["has ended and has the Lease "+l.Name] = gives
		}
	}
	return out
}
