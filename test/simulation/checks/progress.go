package checks

import (
	"fmt"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/plan"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// How long a process may need when nothing is in its way. The parts are pkg/allocator's: requests are repeated after up to 10 s, a turn
// to plan comes after up to 10 s, a waiter reads again after up to 40 s whatever its watches say, a pod that gave up leaves
// a free slot to others for up to 14 s, and one whose program failed for up to 80.
const (
	// soonEnough is what requests and events take together at a server that is well, at their slowest.
	soonEnough = 5 * time.Second
	// publishes is how long a pod that a clean map names may act under no id: one repeated request.
	publishes = soonEnough + 10*time.Second
	// deafFor is how long a waiter whose watches are silent knows of nothing.
	deafFor = 40 * time.Second
	// getsSlot is how long a waiter may be without a slot beside a free one: it is deaf, waits for its turn, and meets one conflict.
	getsSlot = soonEnough + deafFor + 10*time.Second + 10*time.Second
	// comesBack is the same for a pod that gave up while others wait, too, and insists for one whose program failed.
	comesBack = getsSlot + 15*time.Second
	insists   = getsSlot + 80*time.Second + 40*time.Second
	// aftermath is how long what went wrong may last in a process: connections that hang, and what it waits until
	// it connects again.
	aftermath = 75 * time.Second
)

// progress sees to it that what can go on does so soon, wherever a history is quiet for long enough.
type progress struct {
	w     *world.World
	judge *Judge
	// troubled is the last moment at which something went wrong that may keep a process from going on.
	troubled time.Duration
	// since is since when each process could have gone on and did not, by what it is to do.
	since map[string]time.Duration
	// slotless is since when each process runs without an id and an entry.
	slotless map[*world.Process]time.Duration
	owner    *server.Version
	record   assignment.Record
}

func newProgress(j *Judge) *progress {
	return &progress{w: j.w, judge: j, troubled: -aftermath, since: map[string]time.Duration{}}
}

// run looks once a second, until the history ends.
func (g *progress) run() {
	if g.judge.ended {
		return
	}
	g.look()
	g.w.After(time.Second+g.w.Dice("progress", strconv.Itoa(g.w.Steps)).Span(0, 100*time.Millisecond), g.run)
}

func (g *progress) look() {
	now := g.w.Now()
	g.noteSlotless()
	if !g.w.Calm() {
		g.troubled = now
	}
	if now-g.troubled < aftermath || !g.read() {
		clear(g.since)
		return
	}
	due := map[string]time.Duration{}
	for _, p := range g.w.Running() {
		for what, bound := range g.todo(p) {
			key := p.ID + p.UID + " " + what
			due[key] = now
			if since, known := g.since[key]; known {
				due[key] = since
			}
			if late := now - due[key]; late > bound {
				g.judge.reportf(prompt, "%s %s since %s", p.ID, what, due[key].Round(time.Millisecond))
			}
		}
	}
	g.since = due
}

// noteDamage has all times begin again when the map is not clean, also for less than a second: what restores it may begin a quarantine again
// that has the epoch of an earlier one.
func (g *progress) noteDamage(v *server.Version) {
	if _, clean := entries(v); !clean {
		clear(g.since)
	}
}

// read brings the record up to date. It returns false unless the map is clean.
func (g *progress) read() bool {
	v := g.w.Owner()
	if v == nil || !v.Manages(assignment.FieldManager, assignment.SealKey) {
		return false
	}
	if v != g.owner {
		g.owner, g.record = v, world.Read(v, g.w.Wall())
	}
	return g.record.Sealed && len(g.record.Problems) == 0
}

// todo returns what keeps a process from acting for no reason, with how long that may last.
func (g *progress) todo(p *world.Process) map[string]time.Duration {
	if !g.w.Waits(p) || g.w.IsDeaf(p, soonEnough) || !g.w.CanRead(p) {
		return nil
	}
	v := g.w.Server.Get(object.Pods, p.Pod)
	own := g.judge.receipt(v)
	n := g.owner.Count()
	id, named := g.record.State.Slots.Of(p.Pod)
	switch {
	case named && (id >= n || !g.names(id, v) || (own != nil && own.Gives)):
		return nil // it has to give that first
	case named:
		return map[string]time.Duration{fmt.Sprintf("is named for slot %d and does not act under it", id): publishes}
	}
	bound := getsSlot
	switch {
	case own.Failures() > 0:
		bound = insists
	case own != nil && own.GaveUp:
		bound = comesBack
	}
	out := map[string]time.Duration{}
	length := assignment.QuarantineTime(max(g.record.State.FenceAfter, g.w.Profile.FenceAfter))
	if name := g.keptByLost(n); name != "" && !g.w.Profile.HasOrdinals() {
		// After grace period and LostAfter it is lost, also to who has just heard that it is being deleted. Then a quarantine begins.
		out["waits while a slot stays "+name+"'s, which does not go"] = g.w.Profile.Grace + plan.LostAfter + length + bound
	}
	for _, id := range g.free(n) {
		if own != nil && own.Gives && own.ID == id {
			continue
		}
		since, quarantined := g.record.State.Quarantine.Since(id)
		if !quarantined || g.w.Profile.FenceAfter == 0 { // nobody obeys one
			out[fmt.Sprintf("waits while slot %d is free", id)] = bound
			continue
		}
		// Its end is no news: who has heard of its beginning does not sleep through it.
		out[fmt.Sprintf("waits while slot %d stays in quarantine %d", id, since)] = length + bound - deafFor
	}
	return out
}

// keptByLost returns a pod that has or locks a slot below n, and that is lost when it has not gone for long enough; it is empty if there is
// none.
func (g *progress) keptByLost(n int) string {
	for _, v := range g.w.Server.Objects(object.Pods) {
		if !g.judge.mayBeLost(v) {
			continue
		}
		id := g.judge.receipt(v).ID
		_, taken := g.record.State.Slots[id]
		if id < n && (g.names(id, v) || !taken) {
			return v.Name
		}
	}
	return ""
}

// free returns the slots below n that nobody holds, locks or asks for. In strict mode they may be in quarantine.
func (g *progress) free(n int) []int {
	locked := map[int]bool{}
	for _, v := range g.w.Server.Objects(object.Pods) {
		if r := g.judge.receipt(v); r.Locks() {
			locked[r.ID] = true
		}
	}
	var out []int
	for id := range n {
		_, asked := g.record.State.Handover[id]
		holder := g.w.Server.Get(object.Pods, g.record.State.Slots[id])
		held := holder != nil && g.names(id, holder)
		// In strict mode a holder that is dead is to be put into quarantine first.
		_, entry := g.record.State.Slots[id]
		if !held && !locked[id] && !asked && (!entry || g.w.Profile.FenceAfter == 0) {
			out = append(out, id)
		}
	}
	return out
}

// names reports whether the map gives the slot to this very pod.
func (g *progress) names(id int, v *server.Version) bool {
	return g.record.State.Slots[id] == v.Name && g.record.State.UIDs[id] == assignment.ShortUID(object.UID(v.Object)) && !object.Ended(v.Object)
}

// waited is how long a pod that runs must have been without a slot, so that every planner knows of it.
const waited = 45 * time.Second

// noteSlotless keeps since when each process that runs has neither an id nor an entry.
func (g *progress) noteSlotless() {
	held := map[string]bool{}
	if v := g.w.Owner(); v != nil {
		for _, name := range world.Slots(v) {
			held[name] = true
		}
	}
	now := map[*world.Process]time.Duration{}
	for _, p := range g.w.Running() {
		if !p.Launched || p.Belief() != nil || held[p.Pod] || !g.w.CanRead(p) {
			continue
		}
		now[p] = g.w.Now()
		if since, known := g.slotless[p]; known {
			now[p] = since
		}
	}
	g.slotless = now
}

// checkStarted reports a slot that a write gave to a pod that never ran, while one that runs has waited for long and gets none.
func (g *progress) checkStarted(v *server.Version) {
	if v.Kind.Resource != object.Deployments && v.Kind.Resource != object.ReplicaSets || !v.Before.Exists() || g.w.Now()-g.troubled < aftermath {
		return
	}
	n := v.Count()
	before, after := world.Slots(v.Before), world.Slots(v)
	taken, served := 0, map[string]bool{}
	for id, name := range after {
		served[name] = true
		if id < n {
			taken++
		}
	}
	if taken < n {
		return
	}
	for id, name := range after {
		got := g.w.Server.Get(object.Pods, name)
		if before[id] == name || got == nil || !g.w.NeverRan(got) {
			continue
		}
		for p, since := range g.slotless {
			pod := g.w.Server.Get(object.Pods, p.Pod)
			if g.w.Now()-since < waited || served[p.Pod] || pod == nil || object.UID(pod.Object) != p.UID || object.Terminating(pod.Object) || !world.InWorkload(pod.Object) {
				continue
			}
			g.judge.reportf(prompt, "slot %d goes to %s, which never ran, and %s waits since %s", id, name, p.ID, since.Round(time.Second))
		}
	}
}
