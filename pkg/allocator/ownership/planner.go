package ownership

import (
	"maps"
	"slices"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// Values of planner.owner and planner.locker that are no ids.
const (
	// nobody owns or locks the partition.
	nobody = -1
	// stray stands in locker for a partition that a pod without a slot locks, or that several pods lock. Nobody may get it.
	stray = -2
)

type planner struct {
	in    Input
	force *assignment.Partitions
	// was, owner and locker are, for each partition, the id that owned it before, that owns it now, and whose holder locks
	// it.
	was, owner, locker []int
	// members are the members now. paused are the other ids below the count that are listed.
	members, paused map[int]bool
	// withheld says that a live pod that does not work on partitions has a slot below the count.
	withheld bool
	// vacated are the ids that release took out of the members because nobody has held them for failover-after.
	vacated map[int]bool
}

func newPlanner(in Input, force *assignment.Partitions) *planner {
	p := &planner{in: in, force: force, members: map[int]bool{}, paused: map[int]bool{}, vacated: map[int]bool{}}
	for id, h := range in.Holders {
		p.withheld = p.withheld || (h.Unaware && id < in.Count)
	}
	p.locker = p.whoLocks()
	p.was = make([]int, len(p.locker))
	for k := range p.was {
		p.was[k] = nobody
		if !in.Clean && p.locker[k] >= 0 { // the locks are the ownership
			p.was[k] = p.locker[k]
		}
	}
	if in.Clean && in.Before != nil {
		for id, set := range in.Before.Owners {
			if id < in.Count {
				p.list(id, in.Before.Paused.Contains(id))
			}
			for k := range set.All() {
				p.was[k] = id
			}
		}
	}
	p.owner = slices.Clone(p.was)
	return p
}

// whoLocks returns, for each partition, the id whose holder locks it.
func (p *planner) whoLocks() []int {
	locker := make([]int, p.end())
	for k := range locker {
		locker[k] = nobody
	}
	lock := func(set placement.Set, id int) {
		for k := range set.All() {
			if locker[k] == nobody {
				locker[k] = id
			} else {
				locker[k] = stray
			}
		}
	}
	for id, h := range p.in.Holders {
		if h.Works {
			lock(h.Locks, id)
		}
	}
	for _, set := range p.in.Strays {
		lock(set, stray)
	}
	return locker
}

// end returns a number above all partitions that are owned, locked or in force.
func (p *planner) end() int {
	end := p.force.Count
	reach := func(set placement.Set) {
		for _, last := range set.Ranges() {
			end = max(end, last+1)
		}
	}
	if p.in.Before != nil {
		for _, set := range p.in.Before.Owners {
			reach(set)
		}
	}
	for _, h := range p.in.Holders {
		reach(h.Locks)
	}
	for _, set := range p.in.Strays {
		reach(set)
	}
	return end
}

// list lists an id below the count, as a member or as paused.
func (p *planner) list(id int, paused bool) {
	delete(p.members, id)
	delete(p.paused, id)
	if paused {
		p.paused[id] = true
		return
	}
	p.members[id] = true
}

// listed reports whether the id is below the count and listed.
func (p *planner) listed(id int) bool { return p.members[id] || p.paused[id] }

// release takes partitions from ids (rules 8, 10 and 11), and takes ids that nobody holds out of the row.
func (p *planner) release() {
	for id, vacant := range p.in.Vacant {
		if vacant && p.listed(id) && !p.withheld && !p.held(id) && !p.quarantined(id) {
			delete(p.members, id)
			delete(p.paused, id)
			p.vacated[id] = true
		}
	}
	for k, id := range p.owner {
		if id == nobody || p.quarantined(id) {
			continue
		}
		if p.held(id) {
			if h := p.in.Holders[id]; h.Yields.Contains(k) || (h.Unaware && k >= p.force.Count) { // nobody yields the latter, and nobody gets it
				p.owner[k] = nobody
			}
		} else if !p.listed(id) || k >= p.force.Count {
			p.owner[k] = nobody
		}
	}
}

// held reports whether the slot has a live holder. It need not work on partitions yet: its next step, or its next process, may
// take what the map gives to the id, without a write of the owner.
func (p *planner) held(id int) bool {
	_, live := p.in.Holders[id]
	return live
}

func (p *planner) quarantined(id int) bool { return p.in.Quarantined != nil && p.in.Quarantined(id) }

// admit takes over from the receipts who is paused, and adds members. An id that ends its pause joins as any other.
func (p *planner) admit() {
	if p.withheld {
		return
	}
	for id, h := range p.in.Holders {
		if h.Paused && id < p.in.Count && (p.listed(id) || slices.Contains(p.was, id)) {
			p.list(id, true)
		}
	}
	alone := p.force.Strategy == placement.NamePrimary && len(p.members) > 0 // each id joins by itself, when it has been held for long enough
	for id, h := range p.in.Holders {
		if h.Works && !h.Paused && id < p.in.Count && (!alone || (id == p.in.Me && p.in.Joins)) {
			p.list(id, false)
		}
	}
}

// give gives partitions of nobody to the ids that are to own them.
func (p *planner) give() {
	if p.withheld {
		return
	}
	strategy, _ := p.in.Strategies(p.force.Strategy)
	target := strategy(placement.Input{
		Partitions: p.force.Count, Count: p.in.Count, Members: slices.Sorted(maps.Keys(p.members)), Owners: p.owners(p.was), Target: p.in.Wish.Target,
	})
	for _, id := range target.IDs() { // in order: a program's own strategy may name a partition twice
		if !p.members[id] {
			continue
		}
		yields := p.in.Holders[id].Yields
		for k := range target[id].Intersect(placement.Between(0, p.force.Count-1)).All() { // a program's own strategy may say anything
			free := p.owner[k] == nobody && (p.locker[k] == nobody || p.locker[k] == id)
			if free && !yields.Contains(k) && (p.was[k] != nobody || !p.in.Unserved) {
				p.owner[k] = id
			}
		}
	}
	p.askTheRow(target)
}

// askTheRow takes nothing for now of what the row as it was read gives to the very id that yields it. Somebody may have removed the receipt
// that yields it. Then the next process of the pod knows nothing of the yield, and follows the row. It may have taken such a partition again,
// without a write that would make this plan fail. The plan after this one sees its lock. What the id is to own on is nobody's for one write all the
// same, because its pod takes it again only then.
func (p *planner) askTheRow(target placement.Owners) {
	aims, known := View{Count: p.in.Count, Row: p.in.Before, Clean: p.in.Clean, Target: p.in.Wish.Target, Strategies: p.in.Strategies}.Aims()
	for k, id := range p.was[:p.force.Count] {
		freed := p.owner[k] == nobody && target[id].Contains(k)
		if p.owner[k] != id && !freed && p.in.Holders[id].Yields.Contains(k) && (!known || aims[id].Contains(k)) {
			p.owner[k] = id
		}
	}
}

// owners returns the sets of an array of owners. Each id that is listed has one.
func (p *planner) owners(of []int) placement.Owners {
	numbers := make(map[int][]int, len(p.members)+len(p.paused))
	for _, ids := range []map[int]bool{p.members, p.paused} {
		for id := range ids {
			numbers[id] = nil
		}
	}
	for k, id := range of {
		if id >= 0 {
			numbers[id] = append(numbers[id], k)
		}
	}
	owners := make(placement.Owners, len(numbers))
	for id, ks := range numbers {
		owners[id] = placement.Of(ks...)
	}
	return owners
}

func (p *planner) decision() Decision {
	next := &assignment.Partitions{Count: p.force.Count, Strategy: p.force.Strategy, Owners: p.owners(p.owner), Paused: placement.Of(slices.Collect(maps.Keys(p.paused))...)}
	d := Decision{Next: next, Withheld: p.withheld}
	if p.in.Before != nil {
		next.Epoch = p.in.Before.Epoch
	}
	// A row that nobody tracks cannot be made clean, so it is not written again for that.
	if d.Changed = p.in.Renew || !p.in.Trust.Believed() || !next.Same(p.in.Before); p.ended() {
		d.Next, d.Changed = nil, p.in.Trust != assignment.Absent
	}
	before := p.owners(p.was)
	for _, id := range next.Owners.IDs() {
		if gained := next.Owners[id].Minus(before[id]); !gained.Empty() {
			d.Gained = append(d.Gained, Change{id, gained})
		}
	}
	for _, id := range before.IDs() {
		if lost := before[id].Minus(next.Owners[id]); !lost.Empty() {
			d.Lost = append(d.Lost, Change{id, lost})
		}
		if p.vacated[id] { // before lists it only if it owned something
			d.FailedOver = append(d.FailedOver, Change{id, before[id]})
		}
	}
	return d
}

// ended reports whether there are no partitions: nobody works on them yet, or the user ended them, and nobody owns or locks
// one any more.
func (p *planner) ended() bool {
	if len(p.members) == 0 && p.in.Trust == assignment.Absent {
		return !slices.ContainsFunc(p.owner, func(id int) bool { return id != nobody })
	}
	some := func(id int) bool { return id != nobody }
	return p.force.Count == 0 && !slices.ContainsFunc(p.owner, some) && !slices.ContainsFunc(p.locker, some)
}
