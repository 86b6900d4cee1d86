package decide

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/idalloc/idalloc/autoscaler/packing"
	"github.com/idalloc/idalloc/pkg/placement"
)

// view is a moment as the packing sees it. The packing numbers the ids that count, in ascending order, as pods 0, 1, 2 and so on. What another member owns
// stays with it and is not packed, because no pod can take it from a member that does not answer. A pod that runs but has not been Ready for long gives away
// what it cannot work off.
type view struct {
	Seen

	ids []int
	// holes is the number of lost ids below the highest id whose pod runs.
	holes int
	// strained holds the ids that do not count and give something away.
	strained []int
	// missing explains which ids do not count. It is empty if all do.
	missing string
	// kept is what members that do not count keep.
	kept placement.Owners
	// oversized holds the partitions that grow faster than a pod works off. late holds the others that have more waiting than a pod works off in time.
	oversized, late []int
	// parts holds the partitions to pack, in ascending order. speeds and owners refer to them by their index in parts.
	parts  []int
	speeds []float64
	owners placement.Owners
}

func (d *Decider) view(s Seen, ids []int, now time.Time) view {
	v := view{Seen: s, ids: ids, holes: d.holes(s, now), missing: d.missing(s, now), kept: placement.Owners{}, owners: placement.Owners{}}
	stays := placement.Set{}
	for _, id := range s.members() {
		if slices.Contains(ids, id) {
			continue
		}
		v.kept[id] = s.Row[id]
		if s.Unready[id] && d.lost(id, now) && d.load(s, s.Row, id).overloaded() {
			v.kept[id] = d.fitting(s, s.Row[id])
			v.strained = append(v.strained, id)
		}
		stays = stays.Union(v.kept[id])
	}
	places, in, comes := make([]int, s.Partitions), d.input(s.Loads.Speeds), d.input(s.Loads.comes())
	for p := range s.Partitions {
		switch {
		case packing.Fits(in.Size(p)):
		case packing.Fits(comes.Size(p)):
			v.late = append(v.late, p)
		default:
			v.oversized = append(v.oversized, p)
		}
		if places[p] = -1; stays.Contains(p) {
			continue
		}
		places[p] = len(v.parts)
		v.parts, v.speeds = append(v.parts, p), append(v.speeds, s.Loads.Speeds[p])
	}
	for rank, id := range ids {
		var mine []int
		for p := range s.Row[id].All() {
			mine = append(mine, places[p])
		}
		v.owners[rank] = placement.Of(mine...)
	}
	return v
}

// fitting returns those of an id's partitions that one pod works off: the largest that fit together, and always the largest one.
func (d *Decider) fitting(s Seen, set placement.Set) placement.Set {
	parts := slices.SortedStableFunc(set.All(), func(a, b int) int { return cmp.Compare(s.Loads.Speeds[b], s.Loads.Speeds[a]) })
	in := d.input(s.Loads.Speeds)
	keep, sum := []int{parts[0]}, in.Size(parts[0])
	for _, p := range parts[1:] {
		if with := sum + in.Size(p); packing.Fits(with) {
			keep, sum = append(keep, p), with
		}
	}
	return placement.Of(keep...)
}

// judged returns the ids whose load counts.
func (v view) judged() []int { return slices.Concat(v.ids, v.strained) }

// below counts the ids that count and are below this number.
func (v view) below(count int) int {
	n, _ := slices.BinarySearch(v.ids, count)
	return n
}

// most returns how many ids can count with at most this many pods, or 0 for no limit.
func (v view) most(pods int) int {
	if pods <= 0 {
		return 0
	}
	return max(1, v.below(pods)+max(0, pods-v.Count))
}

// pods returns how many pods are needed for this many ids to count.
func (v view) pods(ids int) int {
	if ids > len(v.ids) {
		return max(ids+v.holes, v.Count)
	}
	return v.ids[ids-1] + 1
}

// pack packs the partitions into ids that use this share of their pods' capacity. The result may have more ids than exist. Its Pods counts ids, its Owners
// names ids, and its Oversized has no meaning here.
func (d *Decider) pack(v view, share float64, low, high int) packing.Packing {
	packed := packing.Pack(packing.Input{
		Speeds: v.speeds, Capacity: d.Settings.Capacity * share, Margin: d.Settings.Margin, Owners: v.owners, Min: max(1, low), Max: high,
	})
	named := maps.Clone(v.kept)
	for rank, set := range packed.Owners {
		var whose []int
		for place := range set.All() {
			whose = append(whose, v.parts[place])
		}
		if rank < len(v.ids) {
			named[v.ids[rank]] = placement.Of(whose...)
		}
	}
	packed.Owners = named
	return packed
}
