package checks

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// readReceipt is what came of reading a receipt.
type readReceipt struct {
	receipt receipt.Receipt
	err     error
}

// Violation is a promise that was broken.
type Violation struct {
	At      time.Duration
	Promise string
	Detail  string
}

// String says what was broken, and when.
func (v Violation) String() string {
	return fmt.Sprintf("%s at %s: %s", v.Promise, v.At.Round(time.Millisecond), v.Detail)
}

// The promises that are checked.
const (
	exclusion = "mutual exclusion"
	token     = "fencing token"
	density   = "density and progress"
	moves     = "minimal moves"
	bounded   = "bounded requests"
	receipts  = "receipts"
	prompt    = "bounded progress"
	shown     = "published identity"
	leftovers = "what ends leaves nothing"
	reuse     = "ids rest"
)

// Judge watches what programs believe, and nothing else, and says when a promise is broken.
type Judge struct {
	w          *world.World
	violations []Violation
	byID       map[thing]heldBy // the last holder of each id
	believed   map[*world.Process]identity.Identity
	// idOf is the last id of each pod, by UID.
	idOf map[string]thing
	// ends is the last pod of each id that ended.
	ends map[thing]ended
	// unrested: the owner lacks the annotation by which ids rest, because another writer removed it. restless is when it last did.
	unrested bool
	restless time.Duration
	// excusedAt is the last moment at which a pod may have had a reason to move.
	excusedAt time.Duration
	told      map[string]bool
	// users are the pods that have used each token, by UID.
	users map[int64]string
	// read are the receipts that were read, by the version of the pod.
	read map[*server.Version]readReceipt
	// written are the receipts, by pod, and changed says whose another writer changed since.
	written map[string]*written
	changed map[string]bool
	// leaseless are the pods, by UID, whose Lease another writer changed since they wrote it. together says when two at work on one thing last had an excuse.
	leaseless map[string]bool
	together  map[pair]time.Duration
	count     int
	// still is what everybody acted under when the rest began, nil before.
	still map[*world.Process]identity.Identity
	// stillOn are the partitions that everybody worked on then.
	stillOn map[*world.Process]placement.Set
	// ended says that processes are ended on purpose now.
	ended    bool
	progress *progress
	parts    parts
	says     published
	// asked is how many requests each process had made when the rest began.
	asked map[*world.Process]int
}

// New returns the judge of a world, and has it be its witness.
func New(w *world.World) *Judge {
	j := &Judge{
		w: w, byID: map[thing]heldBy{}, believed: map[*world.Process]identity.Identity{}, idOf: map[string]thing{}, ends: map[thing]ended{}, told: map[string]bool{},
		users: map[int64]string{}, read: map[*server.Version]readReceipt{}, written: map[string]*written{}, changed: map[string]bool{}, leaseless: map[string]bool{}, together: map[pair]time.Duration{}, parts: newParts(), says: newPublished(),
	}
	j.progress = newProgress(j)
	w.Witness = j
	return j
}

func (j *Judge) reportf(promise, format string, args ...any) {
	v := Violation{At: j.w.Now(), Promise: promise, Detail: fmt.Sprintf(format, args...)}
	if key := promise + v.Detail; !j.told[key] {
		j.told[key] = true
		j.violations = append(j.violations, v)
		j.w.Note("VIOLATION", v.String())
	}
}

// Look compares what all processes believe at this moment.
func (j *Judge) Look() {
	now := map[thing][]*world.Process{}
	for _, p := range j.w.Processes {
		b := p.Belief()
		j.checkEnvironment(p)
		j.checkStill(p, b)
		before, had := j.believed[p]
		begins := b != nil && (!had || before.ID != b.ID || before.Token != b.Token)
		if b == nil {
			delete(j.believed, p)
			continue
		}
		if begins {
			j.began(p, *b)
		}
		j.believed[p] = *b
		id := thing{b.Owner, b.ID}
		for _, other := range now[id] {
			if !j.excusedNow("id", id, p, other) {
				j.reportf(exclusion, "id %d: %s and %s", b.ID, other.ID, p.ID)
			}
		}
		now[id] = append(now[id], p)
		if b.Number == 0 {
			continue
		}
		machine := thing{b.Owner, -b.Number} // no id is negative
		for _, other := range now[machine] {
			if !j.excusedNow("number", machine, p, other) {
				j.reportf(exclusion, "number %d: %s and %s", b.Number, other.ID, p.ID)
			}
		}
		now[machine] = append(now[machine], p)
	}
	j.lookAtPartitions()
}

// Rest notes what each process acts under, and what it has asked so far. From here on no process has a reason to let go of it, not even for a moment.
func (j *Judge) Rest() {
	j.still, j.asked, j.stillOn = map[*world.Process]identity.Identity{}, map[*world.Process]int{}, map[*world.Process]placement.Set{}
	for _, p := range j.w.Processes {
		j.asked[p] = p.Calls
		if b := p.Belief(); b != nil && !j.isGhost(p) {
			j.still[p] = *b
			j.stillOn[p] = worksOn(p)
		}
	}
}

// Rested says how long the rest was, and ends it: a settled workload has asked little, and nothing is missing.
func (j *Judge) Rested(long time.Duration) {
	j.checkCalls(long)
	if missing := j.Settled(); missing != "" {
		j.Missf("%s after it had settled: %s", long, missing)
	}
	j.Look()
	j.RestEnds()
}

// RestEnds ends the rest: from here on there are reasons again.
func (j *Judge) RestEnds() {
	j.Look()
	j.still, j.stillOn = nil, nil
}

// Missf reports that something is missing for good, and notes what is there.
func (j *Judge) Missf(format string, args ...any) {
	j.reportf(density, format, args...)
	if v := j.w.Owner(); v != nil {
		j.w.Note("owner", string(object.Encode(object.At(v.Object, object.Metadata, "annotations"))))
	}
	for _, v := range j.w.Server.Objects(object.Pods) {
		j.w.Note("pod", v.Name, string(object.Encode(v.Object)))
	}
}

// checkStill reports a process that let go of its id in the rest, even if it took it again.
func (j *Judge) checkStill(p *world.Process, b *identity.Identity) {
	had, held := j.still[p]
	if !held {
		return
	}
	if left := j.stillOn[p].Minus(worksOn(p)); !left.Empty() {
		delete(j.stillOn, p)
		j.reportf(moves, "%s worked on partitions %s and stopped for no reason", p.ID, left)
	}
	if b != nil && b.ID == had.ID && b.Token == had.Token {
		return
	}
	delete(j.still, p)
	j.reportf(moves, "%s had id %d and let go of it for no reason", p.ID, had.ID)
}

// HandOn has next be the process whose work continues: it is the one that came before it in its pod.
func (j *Judge) HandOn(before, next *world.Process) {
	if b, known := j.believed[before]; known {
		j.believed[next] = b
		delete(j.believed, before)
	}
	if b, known := j.still[before]; known {
		j.still[next], j.stillOn[next] = b, j.stillOn[before]
		delete(j.still, before)
		delete(j.stillOn, before)
	}
}

// Trouble notes that something went wrong that may keep a process from going on.
func (j *Judge) Trouble() { j.progress.troubled = j.w.Now() }

// Excuse notes that something happened after which pods may have to move.
func (j *Judge) Excuse() { j.excusedAt = j.w.Now() }

// Stored is told of every write.
func (j *Judge) Stored(v *server.Version) {
	j.checkWritten(v)
	j.noteLease(v)
	j.noteLocked(v)
	j.noteEnded(v)
	j.checkRemoved(v)
	j.progress.noteMade(v)
	if v.Kind.Resource != j.w.Profile.Resource || v.Name != world.OwnerName || v.Object == nil {
		return
	}
	j.noteMissed()
	j.noteRest(v)
	j.checkPatience(v)
	j.countMoves(v)
	j.progress.noteOwner(v)
	if n := v.Count(); n != j.count {
		j.count = n
		j.Excuse()
	}
}

// Served says who waits beside a free slot; it is empty if no pod does. It does not ask for more than can be had before an operator repairs
// what only an operator can.
func (j *Judge) Served() string {
	owner := j.w.Owner()
	if owner == nil {
		return ""
	}
	held := map[int]bool{}
	var waiters []*world.Process
	for _, p := range j.w.Processes {
		if b := p.Belief(); b != nil {
			held[b.ID] = true
		} else if p.Runs() && j.w.Waits(p) {
			waiters = append(waiters, p)
		}
	}
	slots := world.Slots(owner)
	for id := range owner.Count() {
		if held[id] || j.isKept(id, slots[id]) {
			continue
		}
		for _, p := range waiters {
			if j.w.Profile.Resource != object.StatefulSets || p.Pod == fmt.Sprintf("%s-%d", world.OwnerName, id) {
				return fmt.Sprintf("no pod acts under id %d, and %s waits", id, p.ID)
			}
		}
	}
	if gated := j.gatedBeside(held, owner); gated != "" {
		return gated
	}
	return j.unserved(owner)
}

// isKept reports whether a slot comes free only when an operator repairs something: a pod has it or locks it that was taken out of the workload, or
// that awaits its node.
func (j *Judge) isKept(id int, holder string) bool {
	pods := j.lockers(id)
	if v := j.w.Server.Get(object.Pods, holder); v != nil {
		pods = append(pods, v)
	}
	return slices.ContainsFunc(pods, func(v *server.Version) bool { return !world.InWorkload(v.Object) || j.awaitsNode(v) })
}

// awaitsNode reports whether the slot of the pod comes free only when its node is back: it is being deleted, and its receipt does not
// say that it is strict, because it never wrote one or it was damaged.
func (j *Judge) awaitsNode(v *server.Version) bool {
	return object.Terminating(v.Object) && !object.Ended(v.Object) && !j.mayBeLost(v)
}

// mayBeLost reports whether the slot of a pod is to come free although the pod stays.
func (j *Judge) mayBeLost(v *server.Version) bool {
	return object.Terminating(v.Object) && !object.Ended(v.Object) && j.receipt(v).Strict
}

// checkCalls reports who asked for more than a settled workload needs.
func (j *Judge) checkCalls(in time.Duration) {
	minutes := int(in/time.Minute) + 1
	for p, n := range j.asked {
		most := 12 * minutes // watches that end, and what comes after them
		if f := p.FenceAfter; f > 0 {
			most += int(in/f+1) * 16 // twelve renewals, each up to an eighth earlier
		}
		if p.Controls {
			most = (12 + elects) * minutes
		}
		if made := p.Calls - n; made > most {
			j.reportf(bounded, "%s made %s requests in %s of rest; at most %d are needed", p.ID, strconv.Itoa(made), in, most)
		}
	}
}

// Watch has the judge look once a second at what can go on, until the end.
func (j *Judge) Watch() { j.progress.run() }

// End says that processes are ended on purpose now. It bounds what a process has asked in its whole life, faults and all.
func (j *Judge) End() {
	j.ended = true
	const perMinute = 600
	for _, p := range j.w.Processes {
		if most := perMinute * (int(j.w.Now()/time.Minute) + 1); p.Calls > most {
			j.reportf(bounded, "%s made %d requests in %s", p.ID, p.Calls, j.w.Now().Round(time.Second))
		}
	}
}

// Violations are the promises that were broken so far.
func (j *Judge) Violations() []Violation { return j.violations }
