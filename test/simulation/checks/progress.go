package checks

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/slotlease"
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
	// publishes is how long a pod that the map names may act under no id while no other pod locks it: repeated requests.
	publishes = soonEnough + 20*time.Second
	// repairs is how long the map may say something else than a receipt: a holder that was undone again and again waits for 30 s, and for
	// its turn.
	repairs = soonEnough + 90*time.Second
	// notes is how long a pod that acts may not say in its receipt that it does: up to twenty seconds, and repeated requests.
	notes = 20*time.Second + publishes
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
	// calls are how many requests each process had made at the looks of the last minute.
	calls map[*world.Process][]calls
	// ending are the pods of the map that were seen Terminating.
	ending map[string]span
	// made is when pods were made.
	made []time.Duration
	// moved is when the count, the user's wishes or the map changed last, and was what they were.
	moved time.Duration
	was   string
}

func newProgress(j *Judge) *progress {
	return &progress{w: j.w, judge: j, troubled: -aftermath, since: map[string]time.Duration{}, ending: map[string]span{}, calls: map[*world.Process][]calls{}}
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
	g.checkPace()
	if !g.w.Calm() {
		g.troubled = now
	}
	if now-g.troubled < aftermath || !g.read() {
		clear(g.since)
		return
	}
	due := map[string]time.Duration{}
	for _, p := range g.w.Running() {
		g.note(due, prompt, g.keyOf(p), p.ID, g.todo(p))
		g.note(due, prompt, g.keyOf(p), p.ID, g.stopsLate(p))
	}
	g.note(due, prompt, "", "the workload", g.idle())
	g.note(due, leftovers, "", "the workload", g.deadNames())
	for _, v := range g.w.Server.Objects(object.Pods) {
		g.note(due, leftovers, v.Name+object.UID(v.Object)+" ", v.Name, g.leftBy(v))
		g.note(due, prompt, v.Name+object.UID(v.Object)+" ", v.Name, g.gated(v))
	}
	g.since = due
}

// note takes in what is to be done, each with how long that may last, and reports what is late.
func (g *progress) note(due map[string]time.Duration, promise, key, who string, todo map[string]time.Duration) {
	now := g.w.Now()
	for _, what := range slices.Sorted(maps.Keys(todo)) {
		key := key + what
		due[key] = now
		if since, known := g.since[key]; known {
			due[key] = since
		}
		if late := now - due[key]; late > todo[what] {
			g.judge.reportf(promise, "%s %s since %s", who, what, due[key].Round(time.Millisecond))
		}
	}
}

// noteOwner takes in a version of the owner. All times begin again when the map does not say what receipts do.
func (g *progress) noteOwner(v *server.Version) {
	g.checkStarted(v)
	if !g.agrees(world.Read(v)) {
		clear(g.since)
	}
}

// noteMade takes in a pod that is made.
func (g *progress) noteMade(v *server.Version) {
	if v.Kind.Resource == object.Pods && v.Exists() && !v.Before.Exists() {
		g.made = append(g.made, g.w.Now())
	}
}

// noteHurt has the times of a pod begin again when another writer changes its receipt: its process damps its next try.
func (g *progress) noteHurt(pod *server.Version) {
	for _, p := range g.w.Processes {
		if p.Pod == pod.Name && p.UID == object.UID(pod.Object) {
			maps.DeleteFunc(g.since, func(key string, _ time.Duration) bool { return strings.HasPrefix(key, g.keyOf(p)) })
		}
	}
}

// keyOf is what the keys of a process in since begin with.
func (*progress) keyOf(p *world.Process) string { return p.ID + p.UID + " " }

// agrees reports whether the map can be read and says what the receipts of live pods do.
func (g *progress) agrees(r assignment.Record) bool {
	for _, v := range g.w.Server.Objects(object.Pods) {
		if own := g.judge.receipt(v); !object.Ended(v.Object) && own.State == receipt.Locks && r.State.Slots[own.Share.ID] != v.Name {
			return false
		}
	}
	return len(r.Problems) == 0
}

// read brings the record up to date. It returns false if there is no owner.
func (g *progress) read() bool {
	v := g.w.Owner()
	if v != nil && v != g.owner {
		g.owner, g.record = v, world.Read(v)
	}
	return v != nil
}

// todo returns what keeps a process from acting for no reason, or from saying so, with how long that may last.
func (g *progress) todo(p *world.Process) map[string]time.Duration {
	if b := p.Belief(); b != nil {
		return g.unsaid(p, b.ID)
	}
	v := g.w.Server.Get(object.Pods, p.Pod)
	if !g.w.Waits(p) || g.w.IsDeaf(p, soonEnough) || !g.agrees(g.record) || world.IsAgent(v.Object) && g.deaf() {
		return nil
	}
	own := g.judge.receipt(v)
	n := g.owner.Count()
	id, named := g.record.State.Slots.Of(p.Pod)
	bound := getsSlot
	switch {
	case own.Failures() > 0:
		bound = insists
	case own.State == receipt.GaveUp || own.Rank > 0:
		bound = comesBack
	}
	switch {
	case named && (id >= n || g.lockedBeside(id, p)):
		return nil // it has to give that first, or cannot have it
	case named && own.State == receipt.GaveUp:
		return map[string]time.Duration{fmt.Sprintf("gave slot %d up and is named for it", id): bound}
	case named && g.leasedBy(id, p) != "":
		if holder := g.w.Server.Get(object.Pods, g.leasedBy(id, p)); holder != nil && !object.Terminating(holder.Object) {
			return nil // its receipt was changed, and it may take the slot again
		}
		return map[string]time.Duration{fmt.Sprintf("is named for slot %d, which has a Lease", id): publishes + g.leaseTime()}
	case named:
		return map[string]time.Duration{fmt.Sprintf("is named for slot %d and does not act under it", id): publishes}
	}
	out := map[string]time.Duration{}
	if name := g.keptByLost(n); name != "" && !g.w.Profile.HasOrdinals() {
		out["waits while a slot stays "+name+"'s, which does not go"] = g.w.Profile.Grace + g.w.Profile.Skew + g.w.Profile.Ahead + g.leaseTime() + bound
	}
	for _, id := range g.free(n) {
		out[fmt.Sprintf("waits while slot %d is free", id)] = bound
	}
	return out
}

// unsaid is what the owner does not say of a process that acts under an id.
func (g *progress) unsaid(p *world.Process, id int) map[string]time.Duration {
	runs := p.Runs() && p.Launched && !g.judge.exposed(p) && !g.w.IsDeaf(p, soonEnough)
	pod := g.w.Server.Get(object.Pods, p.Pod)
	if pod != nil && g.judge.maySeemLost(pod) {
		return nil // planners give its slot to another pod, and its Lease keeps that one off
	}
	if !runs || id >= g.owner.Count() || g.lockedBeside(id, p) {
		return nil
	}
	out := map[string]time.Duration{}
	if g.record.State.Slots[id] != p.Pod && (pod == nil || !world.IsAgent(pod.Object) || !g.deaf()) {
		out[fmt.Sprintf("acts under id %d, and the map does not say so", id)] = repairs
	}
	// One of the controller has begun. No other process can note it for one that is cut off.
	if r := g.judge.receipt(g.w.Server.Get(object.Pods, p.Pod)); r.LocksSlot(id) && !p.Assigned && !r.Strict && r.Token == 0 && !g.w.IsCut(p) {
		out[fmt.Sprintf("acts under id %d, and has not noted that", id)] = notes
	}
	return out
}

// lockedBeside reports whether a receipt of another pod locks the slot.
func (g *progress) lockedBeside(id int, p *world.Process) bool {
	return slices.ContainsFunc(g.judge.lockers(id), func(v *server.Version) bool { return object.UID(v.Object) != p.UID })
}

// leasedBy returns the name of another pod that has the Lease of the slot, in strict mode. It is empty if there is none.
func (g *progress) leasedBy(id int, p *world.Process) string {
	lease := g.w.Server.Get(object.Leases, slotlease.Name(object.KindOf(g.w.Profile.Resource).Name+"/"+world.OwnerName, id))
	if p.FenceAfter == 0 || lease == nil {
		return ""
	}
	name, uid, _ := strings.Cut(object.Text(lease.Object, "spec", "holderIdentity"), "/")
	if uid == p.UID {
		return ""
	}
	return name
}

// leaseTime is how long a Lease that no pod renews keeps others off, after the first of them has seen it.
func (g *progress) leaseTime() time.Duration {
	if g.w.Profile.FenceAfter == 0 {
		return 0
	}
	longest := max(g.w.Profile.FenceAfter, g.w.Profile.FenceOther) + assignment.StopGrace
	return longest + longest/8 + 2*time.Second // by a clock that is slow
}

// keptByLost returns a pod that has or locks a slot below n, and that is lost when it has not gone for long enough; it is empty if there is
// none.
func (g *progress) keptByLost(n int) string {
	for _, v := range g.w.Server.Objects(object.Pods) {
		if r := g.judge.receipt(v); g.judge.mayBeLost(v) && r.State == receipt.Locks && r.Share.ID < n {
			return v.Name
		}
	}
	return ""
}

// free returns the slots below n that no pod has, locks or asks for.
func (g *progress) free(n int) []int {
	var out []int
	for id := range n {
		asked := g.mayAsk(g.record.State.Handover[id])
		holder := g.w.Server.Get(object.Pods, g.record.State.Slots[id])
		held := holder != nil && !object.Ended(holder.Object)
		if !held && !asked && len(g.judge.lockers(id)) == 0 {
			out = append(out, id)
		}
	}
	return out
}

// mayAsk reports whether a pod may ask for a slot: it lives, and has none. Other requests are another writer's, and excuse nothing.
func (g *progress) mayAsk(name string) bool {
	v := g.w.Server.Get(object.Pods, name)
	return v != nil && !object.Ended(v.Object) && !object.Terminating(v.Object) && g.judge.receipt(v).State != receipt.Locks
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
		if !p.Launched || p.Belief() != nil || held[p.Pod] {
			continue
		}
		now[p] = g.w.Now()
		if since, known := g.slotless[p]; known {
			now[p] = since
		}
	}
	g.slotless = now
}

// checkStarted reports a slot that a plan gave to a pod that never ran, while one that runs has waited for long and gets none.
func (g *progress) checkStarted(v *server.Version) {
	if g.w.Serving == nil {
		return // another writer wrote it
	}
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
			if g.w.Now()-since < waited || served[p.Pod] || pod == nil || object.UID(pod.Object) != p.UID {
				continue
			}
			stranger := world.IsAgent(pod.Object) && !g.w.Belongs(pod, v) // the controller goes by controllers, and peers by the selector
			if object.Terminating(pod.Object) || !world.InWorkload(pod.Object) || stranger {
				continue
			}
			g.judge.reportf(prompt, "slot %d goes to %s, which never ran, and %s waits since %s", id, name, p.ID, since.Round(time.Second))
		}
	}
}
