package inspect

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/placement"
)

// PartitionCounts summarises the partitions of a Report.
type PartitionCounts struct {
	// Count is the number of partitions in force.
	Count int `json:"count"`
	// Locked is the number of partitions that exactly one live pod locks and that its id owns.
	Locked int `json:"locked"`
}

// counted summarises the partitions. It returns nil if the workload has none and the user asks for none.
func (f *facts) counted() *PartitionCounts {
	d := f.division
	if f.state.Row == nil && !f.broken(assignment.PartitionOwnersKey) && !f.owner.Wish.HasCount && len(f.owner.Wish.Problems) == 0 && len(d.ids) == 0 {
		return nil
	}
	counts := &PartitionCounts{Count: f.inForce().Count}
	for k := range min(counts.Count, len(d.ids)) {
		if s := d.at(k).state; s == Owned || s == Stopping && d.ids[k] != noID && f.owns(d.locker[k], k) {
			counts.Locked++
		}
	}
	return counts
}

// garbled reports whether the value of one of the user's annotations is invalid.
func (f *facts) garbled(key string) bool { return tells(f.owner.Wish.Problems, key) }

// wishes reports whether the user asks for partitions, pods have ids, and the annotation in force can be read.
func (f *facts) wishes() bool {
	return f.owner.Wish.HasCount && !f.broken(assignment.PartitionOwnersKey) && len(f.lockers) > 0
}

func partitionsUnused(f *facts) []about {
	return some(f.wishes() && !f.works && f.owner.Wish.Count > 0, about{with: words{"want": number(f.owner.Wish.Count)}})
}

// pendingWishes finds that the partitions or the strategy in force differ from what the user asks for.
func pendingWishes(f *facts) []about {
	row, want, strategy := f.state.Row, f.owner.Wish.Count, f.strategyWanted()
	differs := func(key, want, have string) []about {
		return []about{{with: words{"key": key, "want": want, "have": have}}}
	}
	switch {
	case !f.wishes() || !f.works || row == nil && want == 0:
		return nil
	case row == nil:
		return differs(assignment.PartitionCountKey, number(want), "none")
	case row.Count != want:
		return differs(assignment.PartitionCountKey, number(want), number(row.Count))
	case row.Strategy != strategy && !f.garbled(assignment.PartitionStrategyKey) && !unknown(strategy):
		return differs(assignment.PartitionStrategyKey, strategy, row.Strategy)
	}
	return nil
}

func unknownWishes(f *facts) []about {
	row, want := f.state.Row, f.strategyWanted()
	pending := f.wishes() && f.works && row != nil && row.Count == f.owner.Wish.Count && row.Strategy != want
	return some(pending && !f.garbled(assignment.PartitionStrategyKey) && unknown(want), about{with: words{"want": want, "have": f.inForce().Strategy}})
}

func (f *facts) strategyWanted() string { return cmp.Or(f.owner.Wish.Strategy, placement.DefaultName) }

func unknown(strategy string) bool {
	_, err := placement.Named(strategy)
	return err != nil
}

func forgottenWishes(f *facts) []about {
	row := f.state.Row
	gone := !f.owner.Wish.HasCount && !f.garbled(assignment.PartitionCountKey) && row != nil && row.Count > 0
	return some(gone, about{with: words{"count": number(f.inForce().Count)}})
}

// partitionsWiped finds that no annotation shows who owns which partitions although pods lock some.
func partitionsWiped(f *facts) []about {
	locked := slices.ContainsFunc(f.division.locker, func(name string) bool { return name != "" })
	return some(f.state.Row == nil && locked && !f.broken(assignment.PartitionOwnersKey), about{})
}

// grouped groups the partitions by the result of of, except those with the zero value.
func grouped[K comparable](d division, of func(k int) K) map[K]placement.Set {
	ks, sets, none := map[K][]int{}, map[K]placement.Set{}, *new(K)
	for k := range d.ids {
		if key := of(k); key != none {
			ks[key] = append(ks[key], k)
		}
	}
	for key, some := range ks {
		sets[key] = placement.Of(some...)
	}
	return sets
}

func partitionsTwice(f *facts) (found []about) {
	for pair, set := range grouped(f.division, func(k int) (pair [2]string) {
		if second := f.division.second[k]; second != "" {
			pair = [2]string{f.division.locker[k], second}
		}
		return pair
	}) {
		found = append(found, about{pod: pair[1], partitions: set, with: words{theOther: pair[0]}})
	}
	return found
}

// byPod returns a finding for each pod with the partitions for which of returns its name.
func (f *facts) byPod(with words, of func(k int) string) (found []about) {
	for name, set := range grouped(f.division, of) {
		found = append(found, onPartitions(set, f.pods[name], with))
	}
	return found
}

// strayPartitions finds partitions that a pod locks but that its id does not own.
func strayPartitions(f *facts) []about {
	return f.byPod(nil, func(k int) string {
		if name := f.division.locker[k]; f.division.second[k] == "" && name != "" && f.state.Row != nil && !f.owns(name, k) {
			return name
		}
		return ""
	})
}

// unowned finds partitions of no id. tooLong selects those that have had no id for longer than they may. One look cannot tell since when that has been so, but
// the row has not changed since idalloc last wrote the owner.
func unowned(tooLong bool) func(*facts) []about {
	return func(f *facts) []about {
		set := grouped(f.division, func(k int) bool {
			return f.division.ids[k] == noID && k < f.inForce().Count && f.division.locker[k] == ""
		})[true]
		age, _ := f.unchanged()
		patience := f.owner.Wish.FailoverAfter
		if patience < 0 {
			patience = assignment.DefaultFailoverAfter
		}
		if set.Empty() || f.owner.Count == 0 || (age > patience) != tooLong {
			return nil
		}
		return []about{{partitions: set, with: words{theTime: short(age), "patience": patience.String()}}}
	}
}

// awaited finds partitions of ids that no live pod holds. of selects them by what they wait for: a "lease", the successor of a "dead" pod, any "pod", or a pod
// for "tooLong". One look cannot tell when a holder died. But a slot without an entry has had none since the map was last written.
func awaited(of string) func(*facts) []about {
	return func(f *facts) (found []about) {
		age, _ := f.unchanged()
		failover := f.owner.Wish.FailoverAfter
		after := "after " + failover.String()
		if failover < 0 {
			after = assignment.Never
		} else if f.inForce().Strategy == placement.NamePrimary && !f.owner.Wish.HasFailoverAfter {
			after = "at once, or " + after + " while a pod waits or a rolling update is under way"
		}
		for id, owned := range f.inForce().Owners {
			if name, _ := f.holder(id); name != "" || owned.Empty() {
				continue
			}
			dead, taken := f.state.Slots[id]
			bars, is := f.bars(id, ""), "tooLong"
			switch {
			case bars != "":
				is = "lease"
			case taken:
				is = "dead"
			case failover < 0 || age <= failover:
				is = "pod"
			}
			if is == of {
				found = append(found, about{id: &id, partitions: owned, with: words{theTime: short(age), "after": after, "dead": dead, "bars": bars}})
			}
		}
		return found
	}
}

// pausedPods finds pods that work on no partitions.
func pausedPods(f *facts) (found []about) {
	for _, id := range f.paused() {
		name, _ := f.holder(id)
		why := "it was paused (POST /v1/pause) and not resumed, or its program does not work on partitions"
		if failed := f.pods[name].Receipt.Failures(); failed > 0 {
			why = fmt.Sprintf("its program failed %d times in a row, and it takes part again after some minutes", failed)
		}
		found = append(found, on(id, name, words{"why": why}))
	}
	return found
}

func unknownStrategy(f *facts) []about {
	name := f.inForce().Strategy
	return some(name != "" && unknown(name), about{with: words{"have": name}})
}

func targetsOfNoID(f *facts) (found []about) {
	for id, set := range f.owner.Wish.Target {
		if f.inForce().Strategy == placement.NameExternal && id >= f.owner.Count && !set.Empty() {
			found = append(found, about{id: &id, partitions: set})
		}
	}
	return found
}

func moreIDsThanPartitions(f *facts) []about {
	n, p := f.owner.Count, f.inForce().Count
	return some(p > 0 && n > p, about{with: words{"partitions count": number(p), "idle": number(n - p)}})
}
