package ownership

import (
	"slices"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// View is one moment of an owner as the holder of an id sees it.
type View struct {
	// Count is the number of slots.
	Count int
	// Row is what is in force and who owns what. It is nil if there is nothing or if it cannot be read.
	Row *assignment.Partitions
	// Clean says that both Row and the slots are wholly trusted, and that the slots name this pod for ID.
	Clean bool
	// ID is the id of this process.
	ID int
	// Paused says that this process wants no partitions for now.
	Paused bool
	// Target is the value of the user's key for the strategy external.
	Target placement.Owners
	// Strategies finds a strategy by its name.
	Strategies func(name string) (placement.Strategy, error)
}

// Mine returns what a clean moment says that the id owns.
func (v View) Mine() placement.Set {
	if !v.Clean || v.Row == nil {
		return placement.Set{}
	}
	return v.Row.Owners[v.ID]
}

// Aim returns what the id should own. ok is false if that cannot be told: the moment is not clean, or has a strategy that this
// version does not know. An id that is no member should own nothing, and neither should this process while it is paused.
func (v View) Aim() (aim placement.Set, ok bool) {
	target, ok := v.Aims()
	if v.Paused {
		return placement.Set{}, ok
	}
	return target[v.ID], ok
}

// Aims returns what each member should own. ok is as of Aim.
func (v View) Aims() (target placement.Owners, ok bool) {
	if !v.Clean || v.Row == nil {
		return nil, false
	}
	strategy, err := v.Strategies(v.Row.Strategy)
	if err != nil {
		return nil, false
	}
	members := slices.DeleteFunc(v.Row.Members(), func(id int) bool { return id >= v.Count })
	return strategy(placement.Input{
		Partitions: v.Row.Count, Count: v.Count, Members: members, Owners: v.Row.Owners, Target: v.Target,
	}), true
}

// Duties is what a process has to do about its partitions.
type Duties struct {
	// Take are to be locked and then confirmed. An earlier process of the pod may have locked some of them, and may have left work
	// behind. These are taken even if they are to be yielded then.
	Take placement.Set
	// Lost are to be stopped at once, because a clean map names another id for them, or nobody.
	Lost placement.Set
	// Stop are to be stopped and then yielded.
	Stop placement.Set
	// Yield are to be yielded without more ado, because the process has not begun to work on them.
	Yield placement.Set
	// Back are those whose yield may be withdrawn, if this moment was read after the yield was written.
	Back placement.Set
}

// DutiesAt returns what a process has to do at a clean moment of the owner. held is what it works on, locked what its receipt locks,
// and yielded what it yields.
func DutiesAt(v View, held, locked, yielded placement.Set, keeps bool) Duties {
	if !v.Clean {
		return Duties{}
	}
	mine := v.Mine()
	d := Duties{Lost: locked.Minus(mine), Back: yielded.Minus(mine)}
	open := mine.Minus(held).Minus(yielded)
	aim, known := v.Aim()
	switch {
	case !known || keeps:
		d.Take = open
		return d
	case v.ID >= v.Count: // its slot goes with all that it owns
		d.Take = open.Intersect(locked)
		return d
	}
	d.Take, d.Yield = open.Intersect(aim.Union(locked)), open.Minus(aim).Minus(locked)
	d.Stop = held.Intersect(mine).Minus(aim)
	return d
}
