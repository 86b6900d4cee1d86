package checks

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/partition/placement"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// parts is what the judge knows of partitions.
type parts struct {
	// last is who works on each partition, or worked last.
	last map[int]partHeld
	// forgotten is for partitions what Judge.forgotten is for ids.
	forgotten map[int]int64
	// alive is when the map last gave each id to a pod that lived and was not lost.
	alive map[int]time.Duration
	// missed is when a version of the owner was written last that each process did not hear of at once.
	missed map[*world.Process]time.Duration
	// owner is the version that slots were read from.
	owner *server.Version
	slots map[int]entry
	// scaling is not nil while moves are counted.
	scaling *scaling
	// locks are the partitions that the receipts of live pods lock, and tied says when two of them locked one last.
	locks map[string]placement.Set
	tied  map[int]time.Duration
	// removed are, by pod, the partitions of which somebody removed its word that it yields them.
	removed map[string]placement.Set
	// recorder notes what the check of linearizability looks at.
	recorder *workRecorder
}

// partHeld is who worked on a partition last.
type partHeld struct {
	p     *world.Process
	token int64
}

func newParts(j *Judge) parts {
	return parts{
		last: map[int]partHeld{}, forgotten: map[int]int64{}, alive: map[int]time.Duration{}, missed: map[*world.Process]time.Duration{}, locks: map[string]placement.Set{},
		tied: map[int]time.Duration{}, removed: map[string]placement.Set{}, recorder: newWorkRecorder(j),
	}
}

// lookAtPartitions reports partitions that two processes work on at this moment, and tokens that do not grow.
func (j *Judge) lookAtPartitions() {
	j.noteAlive()
	now := map[int]*world.Process{}
	for _, p := range j.w.Processes {
		j.parts.recorder.look(p)
		if j.isGhost(p) {
			continue
		}
		for k, token := range p.Working() {
			if other := now[k]; other != nil {
				j.reportf(exclusion, "partition %d: %s and %s", k, other.ID, p.ID)
			}
			now[k] = p
			j.checkPartToken(k, p, token)
		}
	}
}

// checkPartToken reports a token that is not above that of another owner before, or that fell.
func (j *Judge) checkPartToken(k int, p *world.Process, now int64) {
	last, known := j.parts.last[k]
	if known && last.p == p && last.token == now {
		return
	}
	same := known && last.p.UID == p.UID // the next process of a pod may go on with its token
	least, forgotten := j.parts.forgotten[k]
	forgotten = forgotten && now >= least
	if known && !forgotten && (now < last.token || (now == last.token && !same)) {
		j.reportf(token, "partition %d: %s has %d, and before it %s had %d", k, p.ID, now, last.p.ID, last.token)
	}
	if !known || now < last.token { // this one or a higher one may have been given before it was forgotten
		delete(j.parts.forgotten, k)
	}
	j.parts.last[k] = partHeld{p, now}
}

// noteAlive notes which ids have a holder that lives.
func (j *Judge) noteAlive() {
	owner := j.w.Owner()
	if j.w.Profile.Partitions == 0 || owner == nil {
		return
	}
	if owner != j.parts.owner {
		j.parts.owner = owner
		j.parts.slots, _ = entries(owner)
	}
	for id, e := range j.parts.slots {
		pod := j.w.Server.Get(object.Pods, e.name)
		if pod.Exists() && assignment.ShortUID(object.UID(pod.Object)) == e.uid && !object.Ended(pod.Object) && !j.maySeemLost(pod) {
			j.parts.alive[id] = j.w.Now()
		}
	}
}

// maySeemLost reports whether a planner may take a pod for lost, by a clock that is fast.
func (j *Judge) maySeemLost(v *server.Version) bool {
	ends, err := time.Parse(time.RFC3339, object.Text(v.Object, object.Metadata, "deletionTimestamp"))
	r := j.receiptOf(v)
	return err == nil && r.Locks() && r.FenceAfter > 0 && time.Since(ends) > 9*time.Second // a planner's time is ten, after one without fractions
}

// rowOf is what a version of the owner says about partitions. clean says that it and the slots are idalloc's.
func rowOf(v *server.Version) (row *assignment.Partitions, clean bool) {
	if !v.Exists() {
		return nil, false
	}
	r := world.Read(v, assignment.AnyTime())
	clean = r.Sealed && r.Partitions.Sealed && v.Manages(assignment.FieldManager, assignment.SealKey) && v.Manages(assignment.FieldManager, assignment.PartitionSealKey)
	return r.Partitions.Partitions, clean
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

// checkPatience reports a write that gives an id's partitions to others although the id has lost its holder only a moment ago. A process whose
// watch is silent or ended, or that was suspended, may not know that the id has had a holder meanwhile.
func (j *Judge) checkPatience(v *server.Version) {
	before, wasClean := rowOf(v.Before)
	after, clean := rowOf(v)
	if !wasClean || !clean || before.Same(after) || j.w.Serving == nil || j.mayHaveMissed(j.w.Serving) {
		return
	}
	slots, _ := entries(v)
	for id, set := range before.Owners {
		since, known := j.parts.alive[id]
		kept := world.FailoverAfter - world.FailoverAfter/20 // clocks run at different speeds
		if _, has := slots[id]; has || !known || id >= v.Count() || j.w.Now()-since >= kept {
			continue
		}
		for other, now := range after.Owners {
			if got := now.Intersect(set); other != id && !got.Empty() {
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
		return "nobody says how many partitions there are"
	}
	row, clean := rowOf(owner)
	if !clean {
		return "nobody knows who owns the partitions"
	}
	if row.Count != n || row.Strategy != j.w.Profile.Strategy {
		return fmt.Sprintf("%d partitions by %s are in force instead of %d by %s", row.Count, row.Strategy, n, j.w.Profile.Strategy)
	}
	if missing := j.workMissing(row); missing != "" {
		return missing
	}
	return j.targetMissing(owner, row)
}

// unserved says which partition nobody works on although somebody could. It does not ask for more than can be had before somebody
// repairs what only an operator can.
func (j *Judge) unserved(owner *server.Version) string {
	row, clean := rowOf(owner)
	if !clean || row == nil || owner.Count() == 0 || !j.w.Profile.Divides(world.Template(owner.Object)) {
		return ""
	}
	worked, members := map[int]bool{}, false
	for _, p := range j.w.Processes {
		if p.Runs() && (p.Stubborn() || !p.Divides() || !j.w.CanRead(p)) {
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
		if !object.Ended(v.Object) && (!world.InWorkload(v.Object) || j.awaitsNode(v.Name) || j.receipt(v) == nil) {
			return "" // nobody knows what it works on, or it keeps what it has until somebody deletes it
		}
	}
	for k := range row.Count {
		if members && !worked[k] {
			return fmt.Sprintf("nobody works on partition %d of %d", k, row.Count)
		}
	}
	return ""
}

// scaling is what the judge counts while a change of the count moves partitions.
type scaling struct {
	before, owners placement.Owners
	moves          int
}

// Scale begins to count the partitions that move because somebody changes the count in a quiet place. It returns false if they need
// not be few: with another strategy than sticky, where pods may yield nothing, or where nobody owns any.
func (j *Judge) Scale() bool {
	owner := j.w.Owner()
	row, clean := rowOf(owner)
	few := row != nil && row.Strategy == placement.NameSticky && owner.Count() > 0 && j.w.Profile.Stubborn == 0
	if !clean || !few || !j.w.Profile.Divides(world.Template(owner.Object)) {
		return false
	}
	j.parts.scaling = &scaling{before: row.Owners, owners: maps.Clone(row.Owners)}
	return true
}

// countMoves counts the partitions that a version of the owner moves to another id.
func (j *Judge) countMoves(v *server.Version) {
	s := j.parts.scaling
	row, clean := rowOf(v)
	if s == nil || !clean || row == nil {
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
	row, _ := rowOf(owner)
	in := placement.Input{Partitions: row.Count, Count: owner.Count(), Owners: s.before}
	for id := range owner.Count() {
		in.Members = append(in.Members, id)
	}
	if ideal := placement.IdealMoves(in); s.moves != ideal {
		j.reportf(moves, "%d partitions moved from %s to %s, and %d have to", s.moves, s.before, row.Owners, ideal)
	}
}

// workMissing says which partitions nobody works on, or somebody else.
func (j *Judge) workMissing(row *assignment.Partitions) string {
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
			return fmt.Sprintf("nobody works on partition %d of %d", k, row.Count)
		}
	}
	return ""
}

// targetMissing says which id is no member, or does not own what it should. A pod that cannot yield keeps what it has.
func (j *Judge) targetMissing(owner *server.Version, row *assignment.Partitions) string {
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
		Target: assignment.DecodeWish(object.Annotations(owner.Object)).Target,
	}
	if target := strategy(in); !target.Equal(row.Owners) {
		return fmt.Sprintf("%s own the partitions instead of %s", row.Owners, target)
	}
	return ""
}
