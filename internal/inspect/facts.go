package inspect

import (
	"fmt"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
)

// facts are the conclusions about an owner and its pods: who has which slot, and who works on which partitions. The same snapshot gives the same facts, and no
// check changes them.
type facts struct {
	*holding
	division division
	state    assignment.State
	// works: a live pod with an id works on partitions.
	works bool
	// lasting are the pods that have the ids, if each id has a pod and none of these ends; otherwise it is nil. condemned are those of them without an ordinal,
	// if the workload gives ordinals.
	lasting, condemned []string
}

func factsOf(n snapshot) *facts {
	h := holdingOf(n)
	f := &facts{holding: h, division: divide(h), state: n.owner.Record.State}
	f.works = len(h.those(func(p pod) bool { return p.divides() && !h.left(p) })) > 0
	f.findLasting()
	return f
}

func (f *facts) findLasting() {
	ordinals := len(f.those(func(p pod) bool { return p.Owned && p.Ordinal != proposal.NoOrdinal })) > 0
	for id := range f.owner.Count {
		name, locks := f.holder(id)
		p := f.pods[name]
		if !locks || p.Terminating {
			f.lasting, f.condemned = nil, nil
			return
		}
		f.lasting = append(f.lasting, name)
		if ordinals && p.Owned && p.Ordinal == proposal.NoOrdinal {
			f.condemned = append(f.condemned, name)
		}
	}
}

// paused returns the ids below the count whose pods work on no partitions although there are partitions, in ascending order.
func (f *facts) paused() (ids []int) {
	for id := range min(f.owner.Count, mostListed) {
		if name, _ := f.holder(id); len(f.lockers[id]) > 0 && f.inForce().Count > 0 && f.pods[name].abstains() {
			ids = append(ids, id)
		}
	}
	return ids
}

// deletion returns the command that deletes a pod.
func (f *facts) deletion(name string) string {
	return fmt.Sprintf("`kubectl delete pod %s -n %s`", name, f.owner.Namespace)
}
