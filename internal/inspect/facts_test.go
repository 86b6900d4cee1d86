package inspect

import (
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	rolling "github.com/idalloc/idalloc/pkg/allocator/store/rollout"
)

// worker is the name of the workload, and of its account.
const worker = "worker"

func reported(n snapshot) Report                { return reportOf(factsOf(n)) }
func (n snapshot) view() View                   { return holdingOf(n).view() }
func (n snapshot) partitionView() PartitionView { return factsOf(n).partitionView() }
func (n snapshot) explain(name string) Explanation {
	return factsOf(n).explain(name, nil)
}

// settledPods returns a snapshot of a Deployment with this many replicas, whose pods a, b, c… hold the ids 0, 1, 2….
func settledPods(count int) snapshot {
	n := snapshot{
		owner: store.Owner{
			Ref:     kinds.Ref{APIVersion: "apps/v1", Kind: kinds.Deployment, Namespace: "shop", Name: worker},
			Count:   count,
			Rollout: rolling.View{MaxUnavailable: 1},
			Record:  assignment.Record{Present: true, State: assignment.State{Slots: assignment.Slots{}}},
		},
		pods:    map[string]pod{},
		rollout: rollout{outdated: map[string]bool{}},
	}
	for id := range count {
		p := n.add(string(rune('a' + id)))
		n.name(id, p.Name)
		n.lock(p.Name, id)
	}
	return n
}

// add adds a live pod without a slot. Each pod is younger than the one that was added before it.
func (n snapshot) add(name string) pod {
	p := pod{
		Pod: proposal.Pod{
			Name: name, UID: "uid-" + name, Owned: true, Controller: "uid-5d9", Ordinal: proposal.NoOrdinal, Created: time.Unix(int64(len(n.pods)), 0),
			Receipt: receipt.Receipt{Share: receipt.Nothing()},
		},
		phase: "Running", controller: "worker-5d9", revision: "5d9",
	}
	n.pods[name] = p
	return p
}

// name adds an entry for a pod to the map.
func (n snapshot) name(id int, pod string) { n.owner.Record.State.Slots[id] = pod }

// edit changes a pod.
func (n snapshot) edit(name string, change func(*pod)) {
	p := n.pods[name]
	change(&p)
	n.pods[name] = p
}

// lock gives a pod a receipt for a slot.
func (n snapshot) lock(name string, id int) {
	n.edit(name, func(p *pod) {
		p.Receipt = receipt.Receipt{UID: p.UID, Owner: n.owner.String(), State: receipt.Locks, Share: receipt.Share{ID: id}}
	})
}

// free removes a slot's entry and its holder.
func (n snapshot) free(id int) {
	delete(n.pods, n.owner.Record.State.Slots[id])
	delete(n.owner.Record.State.Slots, id)
}
