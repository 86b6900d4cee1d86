package checks

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/measure"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// parts is what the judge knows of partitions.
type parts struct {
	// last is who works on each partition, or worked last.
	last map[thing]heldBy
	// working is with which token each process works on each partition.
	working map[*world.Process]map[int]int64
	// taken is since when the map has given each id to a pod that locks it, lives and is not lost, and alive when it last did so and had for a moment.
	taken, alive map[int]time.Duration
	// locked is what the last receipt for each id locked.
	locked map[int]placement.Set
	// missed is when a version of the owner was written last that each process did not hear of at once.
	missed map[*world.Process]time.Duration
	// owner is the version that slots were read from.
	owner *server.Version
	slots assignment.Slots
	// scaling is not nil while moves are counted.
	scaling *scaling
}

func newParts() parts {
	return parts{
		last: map[thing]heldBy{}, working: map[*world.Process]map[int]int64{}, taken: map[int]time.Duration{}, alive: map[int]time.Duration{}, locked: map[int]placement.Set{},
		missed: map[*world.Process]time.Duration{},
	}
}

// lookAtPartitions reports partitions that two processes work on at this moment, and tokens that do not grow.
func (j *Judge) lookAtPartitions() {
	j.noteAlive()
	now := map[thing][]*world.Process{}
	for _, p := range j.w.Processes {
		works := p.Working()
		if len(works) == 0 && len(j.parts.working[p]) == 0 {
			continue
		}
		for _, k := range slices.Sorted(maps.Keys(works)) {
			is := thing{p.Belief().Owner, k}
			for _, other := range now[is] {
				if !j.excusedNow("partition", is, p, other) {
					j.reportf(exclusion, "partition %d: %s and %s", k, other.ID, p.ID)
				}
			}
			now[is] = append(now[is], p)
			if before, worked := j.parts.working[p][k]; !worked || before != works[k] {
				j.checkToken("partition", is, j.parts.last, p, works[k])
			}
		}
		if len(works) > 0 || len(j.parts.working[p]) > 0 {
			j.parts.working[p] = maps.Clone(works)
		}
	}
}

// worksOn are the partitions that a process works on.
func worksOn(p *world.Process) placement.Set {
	return placement.Of(slices.Sorted(maps.Keys(p.Working()))...)
}

// moment is for how long a pod has to have and lock an id so that every process hears of it: one that waits for an answer, for up to 15 s, looks at
// the newest version alone. A pod that ended before T3 has not held the id.
const moment = 20 * time.Second

// noteAlive notes which ids have a holder that lives.
func (j *Judge) noteAlive() {
	owner := j.w.Owner()
	if j.w.Profile.Partitions == 0 || owner == nil {
		return
	}
	if owner != j.parts.owner {
		j.parts.owner = owner
		j.parts.slots = world.Slots(owner)
		maps.DeleteFunc(j.parts.taken, func(id int, _ time.Duration) bool { _, has := j.parts.slots[id]; return !has })
	}
	for id, name := range j.parts.slots {
		pod := j.w.Server.Get(object.Pods, name)
		if !pod.Exists() || object.Ended(pod.Object) || j.maySeemLost(pod) || !j.receipt(pod).LocksSlot(id) { // it may never start
			delete(j.parts.taken, id)
			continue
		}
		if _, before := j.parts.taken[id]; !before {
			j.parts.taken[id] = j.w.Now()
		}
		if j.w.Now()-j.parts.taken[id] >= moment {
			j.parts.alive[id] = j.w.Now()
		}
	}
}

// maySeemLost reports whether a planner may take a pod for lost, by a clock that is fast.
func (j *Judge) maySeemLost(v *server.Version) bool {
	if !object.Terminating(v.Object) || !j.receipt(v).Strict {
		return false
	}
	ends, err := time.Parse(time.RFC3339, object.Text(v.Object, object.Metadata, "deletionTimestamp"))
	return err == nil && time.Since(ends)+j.w.Profile.Skew+j.w.Profile.Ahead > -time.Second // a time without fractions
}

// rowOf is what a version of the owner says about partitions, nil if it says nothing that can be read.
func rowOf(v *server.Version) *assignment.Row {
	if !v.Exists() {
		return nil
	}
	return world.Read(v).State.Row
}

// noteMissed notes who does not hear of a version of the owner that is being written.
func (j *Judge) noteMissed() {
	if j.w.Profile.Partitions == 0 {
		return
	}
	for _, p := range j.w.Running() {
		if !j.w.Hears(p) {
			j.parts.missed[p] = j.w.Now()
		}
	}
}

// mayHaveMissed reports whether a process may not know of a holder that an id has had within failover-after. Of what it hears at one moment it
// looks at the last alone.
func (j *Judge) mayHaveMissed(p *world.Process) bool {
	missed, ever := j.parts.missed[p]
	return j.w.IsDeaf(p, 0) || !j.w.Hears(p) || (ever && j.w.Now()-missed < world.FailoverAfter)
}

// noteLocked takes in what a pod's receipt locks.
func (j *Judge) noteLocked(v *server.Version) {
	if v.Kind.Resource == object.Pods && v.Exists() {
		if r := j.receipt(v); r.State == receipt.Locks {
			j.parts.locked[r.Share.ID] = r.Share.Partitions
		}
	}
}

// checkPatience reports a write that gives an id's partitions to others although the id has lost its holder only a moment ago. What the
// holder had unlocked before may go. A process whose
// watch is silent or ended, or that was suspended, may not know that the id has had a holder meanwhile. With primary there is no patience by default.
func (j *Judge) checkPatience(v *server.Version) {
	before, after := rowOf(v.Before), rowOf(v)
	if before == nil || after == nil || before.Same(after) || j.w.Serving == nil || j.mayHaveMissed(j.w.Serving) {
		return
	}
	if after.Strategy == placement.NamePrimary && !assignment.DecodeWish(v.Annotations()).HasFailoverAfter {
		return
	}
	slots := world.Slots(v)
	for id, set := range before.Owners {
		since, known := j.parts.alive[id]
		kept := world.FailoverAfter - world.FailoverAfter/20 // clocks run at different speeds
		_, has := slots[id]
		if _, member := after.Owners[id]; member || has || !known || id >= v.Count() || j.w.Now()-since >= kept {
			continue
		}
		for other, now := range after.Owners {
			if got := now.Intersect(set).Intersect(j.parts.locked[id]); other != id && !got.Empty() {
				j.reportf(moves, "%s of id %d go to %d, %s after it lost its holder", got, id, other, j.w.Now()-since)
			}
		}
	}
}

// partitionsMissing says what is missing until each partition is worked on by whom the strategy says.
func (j *Judge) partitionsMissing(owner *server.Version) string {
	if !j.w.Profile.Divides(world.Template(owner.Object)) || owner.Count() == 0 {
		return ""
	}
	n, err := strconv.Atoi(object.Annotation(owner.Object, assignment.PartitionCountKey))
	if err != nil {
		return "no key says how many partitions there are"
	}
	row := rowOf(owner)
	if row == nil {
		return "no row says which id owns which partition"
	}
	if row.Count != n || row.Strategy != j.w.Profile.Strategy {
		return fmt.Sprintf("%d partitions by %s are in force instead of %d by %s", row.Count, row.Strategy, n, j.w.Profile.Strategy)
	}
	if missing := j.workMissing(row); missing != "" {
		return missing
	}
	return j.targetMissing(owner, row)
}

// unserved says which partition no pod works on although one could. It does not ask for more than can be had before an operator
// repairs what only an operator can.
func (j *Judge) unserved(owner *server.Version) string {
	row := rowOf(owner)
	if row == nil || owner.Count() == 0 || !j.w.Profile.Divides(world.Template(owner.Object)) {
		return ""
	}
	worked, members := map[int]bool{}, false
	for _, p := range j.w.Processes {
		if p.Runs() && (p.Stubborn() || !p.Divides()) {
			return "" // it keeps partitions from moving
		}
		b := p.Belief()
		for k := range p.Working() {
			worked[k] = true
			members = members || b.ID < owner.Count()
		}
		members = members || (b != nil && b.ID < owner.Count())
	}
	for _, v := range j.w.Server.Objects(object.Pods) {
		if !object.Ended(v.Object) && (!world.InWorkload(v.Object) || j.awaitsNode(v)) {
			return "" // it keeps what it has until a person deletes it
		}
	}
	for k := range row.Count {
		if members && !worked[k] {
			return fmt.Sprintf("no pod works on partition %d of %d", k, row.Count)
		}
	}
	return ""
}

// scaling is what the judge counts while a change of the count moves partitions.
type scaling struct {
	before, owners placement.Owners
	moves          int
}

// Scale begins to count the partitions that move because a user changes the count in a quiet place. It returns false if they need
// not be few: with another strategy than sticky, where pods may yield nothing, or where no id owns any.
func (j *Judge) Scale() bool {
	owner := j.w.Owner()
	row := rowOf(owner)
	// Two controllers that elect none know different moments, and one may undo what the other proposes. No work moves for that.
	agree := j.w.Profile.Controllers < 2 || j.w.Profile.Elects
	few := row != nil && row.Strategy == placement.NameSticky && owner.Count() > 0 && j.w.Profile.Stubborn == 0 && agree
	if !few || !j.w.Profile.Divides(world.Template(owner.Object)) {
		return false
	}
	j.parts.scaling = &scaling{before: row.Owners, owners: maps.Clone(row.Owners)}
	return true
}

// countMoves counts the partitions that a version of the owner moves to another id.
func (j *Judge) countMoves(v *server.Version) {
	s := j.parts.scaling
	row := rowOf(v)
	if s == nil || row == nil {
		return
	}
	for to, set := range row.Owners {
		for from, had := range s.owners {
			if moved := set.Intersect(had); from != to && !moved.Empty() {
				s.moves += moved.Len()
				s.owners[from], s.owners[to] = had.Minus(moved), s.owners[to].Union(moved)
			}
		}
	}
}

// Scaled reports if more partitions moved than the new count needs.
func (j *Judge) Scaled() {
	s, owner := j.parts.scaling, j.w.Owner()
	j.parts.scaling = nil
	row := rowOf(owner)
	in := placement.Input{Partitions: row.Count, Count: owner.Count(), Owners: s.before}
	for id := range owner.Count() {
		in.Members = append(in.Members, id)
	}
	if ideal := measure.IdealMoves(in); s.moves != ideal {
		j.reportf(moves, "%d partitions moved from %s to %s, and %d have to", s.moves, s.before, row.Owners, ideal)
	}
}

// workMissing says which partitions no pod works on, or another one.
func (j *Judge) workMissing(row *assignment.Row) string {
	worked := map[int]string{}
	for _, p := range j.w.Processes {
		b := p.Belief()
		for k := range p.Working() {
			worked[k] = p.ID
			switch {
			case b == nil || !row.Owners[b.ID].Contains(k):
				return fmt.Sprintf("%s works on partition %d, which its id does not own", p.ID, k)
			case k >= row.Count && !p.Stubborn():
				return fmt.Sprintf("%s works on partition %d of %d", p.ID, k, row.Count)
			}
		}
	}
	for k := range row.Count {
		if worked[k] == "" {
			return fmt.Sprintf("no pod works on partition %d of %d", k, row.Count)
		}
	}
	return ""
}

// targetMissing says which id is no member, or does not own what it should. A pod that cannot yield keeps what it has.
func (j *Judge) targetMissing(owner *server.Version, row *assignment.Row) string {
	for id := range owner.Count() {
		if !slices.Contains(row.Members(), id) {
			return fmt.Sprintf("id %d is no member", id)
		}
	}
	if len(row.Owners) != owner.Count() {
		return fmt.Sprintf("%d ids own partitions, and %d are held", len(row.Owners), owner.Count())
	}
	for _, p := range j.w.Processes {
		if p.Runs() && p.Stubborn() {
			return ""
		}
	}
	strategy, err := placement.Named(row.Strategy)
	if err != nil {
		return err.Error()
	}
	in := placement.Input{
		Partitions: row.Count, Count: owner.Count(), Members: row.Members(), Owners: row.Owners,
		Target: assignment.DecodeWish(owner.Annotations()).Target,
	}
	if target := strategy(in); !target.Equal(row.Owners) {
		return fmt.Sprintf("%s own the partitions instead of %s", row.Owners, target)
	}
	return ""
}
