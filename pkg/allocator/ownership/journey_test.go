package ownership

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// pod is a live pod in a journey. What it is taking is locked, but not held yet.
type pod struct {
	held, taking, locked, yielded placement.Set
	// stopped is what has stopped, but is still locked.
	stopped placement.Set
	// paused says that the pod wants no partitions.
	paused bool
}

// journey is a workload whose pods do their duties in a random order.
type journey struct {
	t      *rapid.T
	count  int
	wish   assignment.Wish
	row    *assignment.Partitions
	pods   map[int]*pod
	vacant map[int]bool
}

func (j *journey) input(me int) Input {
	in := Input{
		Count: j.count, Before: j.row, Trust: assignment.Clean, Clean: true, Wish: j.wish, Holders: map[int]Holder{}, Vacant: j.vacant,
		Me: me, Joins: true, Strategies: placement.Named,
	}
	if j.row == nil {
		in.Trust = assignment.Absent
	}
	for id, p := range j.pods {
		in.Holders[id] = Holder{Works: true, Locks: p.locked, Yields: p.yielded, Paused: p.paused}
	}
	return in
}

func (j *journey) view(id int) View {
	return View{Count: j.count, Row: j.row, Clean: true, ID: id, Paused: j.pods[id].paused, Target: j.wish.Target, Strategies: placement.Named}
}

// plan lets one pod plan, and reports whether that changed anything.
func (j *journey) plan(me int) bool {
	d := Plan(j.input(me))
	if d.Changed {
		j.t.Logf("id %d plans %s", me, row(d.Next))
		j.row = d.Next
	}
	return d.Changed
}

// step lets a pod do one thing that it has to do, and reports whether there was one.
func (j *journey) step(id int) bool {
	p, mine := j.pods[id], owners(j.row)[id]
	if !p.taking.Empty() { // T4
		p.held = p.held.Union(p.taking.Intersect(mine))
		p.locked = p.locked.Minus(p.taking.Minus(mine))
		p.taking = placement.Set{}
		return true
	}
	if !p.stopped.Empty() { // the last read before a yield, and the yield
		aim, _ := j.view(id).Aim()
		p.held = p.held.Union(p.stopped.Intersect(mine).Intersect(aim))
		p.yielded = p.yielded.Union(p.stopped.Intersect(mine).Minus(aim))
		p.locked = p.locked.Minus(p.stopped.Minus(p.held))
		p.stopped = placement.Set{}
		return true
	}
	d := DutiesAt(j.view(id), p.held, p.locked, p.yielded, false)
	switch {
	case !d.Lost.Empty():
		p.held, p.locked = p.held.Minus(d.Lost), p.locked.Minus(d.Lost)
	case !d.Stop.Empty():
		p.held, p.stopped = p.held.Minus(d.Stop), d.Stop
	case !d.Yield.Empty():
		p.yielded = p.yielded.Union(d.Yield)
	case !d.Back.Empty():
		p.yielded = p.yielded.Minus(d.Back)
	case !d.Take.Empty(): // T2
		p.taking, p.locked = d.Take, p.locked.Union(d.Take)
	default:
		return false
	}
	j.t.Logf("id %d holds %s, takes %s, has stopped %s, locks %s, yields %s", id, p.held, p.taking, p.stopped, p.locked, p.yielded)
	return true
}

// settle lets the pods act in a random order until nobody has anything to do. check is called after each step.
func (j *journey) settle(check func()) {
	const enough = 2000
	for range enough {
		acts := slices.Sorted(maps.Keys(j.pods))
		for i := rapid.IntRange(0, 2*len(acts)-1).Draw(j.t, "who acts"); ; {
			id := acts[i/2]
			done := i%2 == 0 && j.step(id) || i%2 == 1 && j.plan(id)
			j.neverTwo()
			check()
			if done {
				break
			}
			if i = (i + 1) % (2 * len(acts)); !j.busy() {
				return
			}
		}
	}
	j.t.Fatalf("they never come to rest: %s", row(j.row))
}

// busy reports whether somebody has something to do.
func (j *journey) busy() bool {
	for id, p := range j.pods {
		d := DutiesAt(j.view(id), p.held, p.locked, p.yielded, false)
		duties := d.Take.Union(d.Lost).Union(d.Stop).Union(d.Yield).Union(d.Back)
		if !p.taking.Union(p.stopped).Union(duties).Empty() || Plan(j.input(id)).Changed {
			return true
		}
	}
	return false
}

func (j *journey) neverTwo() {
	works := map[int]int{}
	for _, id := range slices.Sorted(maps.Keys(j.pods)) {
		for q := range j.pods[id].held.All() {
			if other, two := works[q]; two {
				j.t.Fatalf("the pods of %d and %d work on %d", other, id, q)
			}
			works[q] = id
		}
	}
}

// worked says who works on what.
func (j *journey) worked() placement.Owners {
	o := placement.Owners{}
	for id, p := range j.pods {
		if !p.paused || !p.held.Empty() {
			o[id] = p.held
		}
	}
	return o
}

// start draws a workload at rest: all pods work on what is theirs.
func start(t *rapid.T) *journey {
	d := draw{t}
	n := rapid.IntRange(1, ids-1).Draw(t, "N")
	j := &journey{t: t, count: n, pods: map[int]*pod{}, vacant: map[int]bool{}}
	j.wish = assignment.Wish{HasCount: true, Count: d.upTo(parts, "P"), Strategy: d.strategy("strategy"), Target: ownersOf(d.division("wished target"))}
	for id := range n {
		if id == 0 || d.upTo(2, "holder") > 0 {
			j.pods[id] = &pod{}
		}
	}
	j.settle(func() {})
	return j
}

// change changes the members: pods die, for good, and others come.
func (j *journey) change() {
	for id := range j.count {
		_, alive := j.pods[id]
		switch {
		case !(draw{j.t}).oneIn(3, "changes"):
		case !alive:
			j.pods[id], j.vacant[id] = &pod{}, false
		case len(j.pods) > 1:
			delete(j.pods, id)
			j.vacant[id] = true
		}
	}
}

// pauses begins and ends pauses.
func (j *journey) pauses() {
	for _, id := range slices.Sorted(maps.Keys(j.pods)) {
		if (draw{j.t}).oneIn(3, "pauses, or goes on") {
			p := j.pods[id]
			p.paused = !p.paused
			j.t.Logf("id %d is paused: %t", id, p.paused)
		}
	}
}

// aim returns what the members should own.
func (j *journey) aim() placement.Owners {
	if j.row == nil {
		return nil
	}
	in := j.input(noID)
	return target(j.t, j.row, in)
}

func TestFromNothingToThePlaceOfEachPartition(t *testing.T) {
	each(t, func(t *rapid.T) {
		j := start(t)
		if !j.worked().Equal(j.aim()) && j.row != nil && j.row.Count > 0 {
			t.Fatalf("they work on %s, not on %s", j.worked(), j.aim())
		}
		given := 0
		for _, s := range j.worked() {
			given += s.Len()
		}
		if given != j.wish.Count {
			t.Fatalf("%d of %d partitions are worked on", given, j.wish.Count)
		}
	})
}

func TestOneChangeOfTheMembersMovesNothingTwice(t *testing.T) {
	each(t, func(t *rapid.T) {
		j := start(t)
		before := j.worked()
		j.change()
		was := listed(owners(j.row))
		for _, id := range slices.Sorted(maps.Keys(j.pods)) { // the first write takes out and adds all, but with primary each adds itself
			if j.plan(id) && j.wish.Strategy == placement.NamePrimary {
				was = listed(owners(j.row))
			}
		}
		var aim string
		moves := map[int]int{}
		j.settle(func() {
			if now := j.aim().String(); aim == "" {
				aim = now
			} else if now != aim {
				t.Fatalf("on the way the target changes from %s to %s", aim, now)
			}
			for q, id := range listed(owners(j.row)) {
				if id != was[q] && id != noID {
					moves[q]++
				}
				if moves[q] > 1 {
					t.Fatalf("%d moves twice", q)
				}
			}
			was = listed(owners(j.row))
		})
		if !j.worked().Equal(j.aim()) && j.wish.Count > 0 {
			t.Fatalf("they work on %s, not on %s", j.worked(), j.aim())
		}
		if j.wish.Strategy != placement.NameSticky {
			return
		}
		fewest := placement.IdealMoves(placement.Input{
			Partitions: j.wish.Count, Count: j.count, Members: members(j.row, j.count), Owners: before,
		})
		if did := placement.Moves(before, j.worked()); did != fewest {
			t.Fatalf("%d moves instead of %d, from %s to %s", did, fewest, before, j.worked())
		}
	})
}

// listed says for each partition which id owns it.
func listed(o placement.Owners) (who []int) {
	for p := range parts {
		who = append(who, owner(o, p))
	}
	return who
}

func TestChangesOnTheWayEndWhereTheyShould(t *testing.T) {
	each(t, func(t *rapid.T) {
		j := start(t)
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			j.change()
			if draw := (draw{t}); draw.oneIn(2, "other count") {
				j.wish.Count = draw.upTo(parts, "new P")
			}
			j.pauses()
			ids := slices.Sorted(maps.Keys(j.pods))
			for range rapid.IntRange(0, 12).Draw(t, "steps") {
				id := rapid.SampledFrom(ids).Draw(t, "who")
				if (draw{t}).upTo(2, "plans") == 2 {
					j.plan(id)
				} else {
					j.step(id)
				}
				j.neverTwo()
			}
		}
		j.settle(func() {})
		if !j.worked().Equal(j.aim()) && j.wish.Count > 0 {
			t.Fatalf("they work on %s, not on %s", j.worked(), j.aim())
		}
		if j.wish.Count == 0 && j.row != nil {
			t.Fatalf("there are no partitions, but %s", row(j.row))
		}
	})
}

func TestWhileAPodIsPausedTheOthersWorkOnAllPartitions(t *testing.T) {
	each(t, func(t *rapid.T) {
		j := start(t)
		before := j.worked()
		j.pauses()
		j.settle(func() {})
		worked, given, awake := j.worked(), 0, 0
		for id, p := range j.pods {
			given += worked[id].Len()
			switch {
			case !p.paused:
				awake++
			case !worked[id].Empty():
				t.Fatalf("the pod of id %d is paused and works on %s", id, worked[id])
			case j.wish.Count > 0 && slices.Contains(j.row.Members(), id):
				t.Fatalf("id %d is paused, and still a member: %s", id, row(j.row))
			}
		}
		if awake > 0 && given != j.wish.Count {
			t.Fatalf("%d of %d partitions are worked on", given, j.wish.Count)
		}
		for _, p := range j.pods {
			p.paused = false
		}
		j.settle(func() {})
		if !j.worked().Equal(j.aim()) && j.wish.Count > 0 {
			t.Fatalf("after the pauses they work on %s, not on %s; before: %s", j.worked(), j.aim(), before)
		}
	})
}
