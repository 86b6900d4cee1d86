package inspect

import (
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
)

// PartitionState is the state of a partition, as seen from outside.
type PartitionState string

// The states of a partition.
const (
	// Owned: a live pod has the id that owns the partition, and its receipt locks the partition.
	Owned PartitionState = "owned"
	// Stopping: a pod's receipt locks the partition, and the pod should stop its work on it, because another id should have it.
	// Do: run `verify` if it stays.
	Stopping PartitionState = "stopping"
	// Taking: the pod that has the id does not lock the partition yet.
	// Do: run `verify` if it stays.
	Taking PartitionState = "taking"
	// Awaiting: the id that owns the partition has no live pod that works on partitions. The partition waits for the id's next holder. After
	// `idalloc.dev/partition-failover-after` other ids get it.
	// Do: see why no pod has the id.
	Awaiting PartitionState = "waiting"
	// Unowned: no id owns the partition.
	// Do: run `verify` if it stays.
	Unowned PartitionState = "unowned"
	// Paused: the pod that has the id works on no partitions, and other ids get what it owns. Such a row is about the id, and has no partitions.
	Paused PartitionState = "paused"
	// LockedTwice: the receipts of several live pods lock the partition.
	// Do: run `verify` if it stays.
	LockedTwice PartitionState = "duplicate"
)

// noID stands for the id of a partition that no id owns.
const noID = -1

// division contains who owns and who locks each partition.
type division struct {
	*holding
	// ids has the id that owns each partition, or noID. locker and second have the pods whose receipts lock it, or "". If more than two pods lock it, second is
	// one of them.
	ids            []int
	locker, second []string
	// aims are the partitions that the strategy in force gives to each id. known is false if they cannot be computed.
	aims  placement.Owners
	known bool
}

// share is the id, the pod and the state of a partition. The zero value is a partition that does not exist.
type share struct {
	id    int
	pod   string
	state PartitionState
}

// divide finds who owns and who locks each partition.
func divide(h *holding) division {
	d := division{holding: h}
	force := h.inForce()
	end := force.Count
	reach := func(set placement.Set) {
		for _, last := range set.Ranges() {
			end = max(end, last+1)
		}
	}
	for _, set := range force.Owners {
		reach(set)
	}
	for name := range h.pods {
		reach(h.lockedBy(name))
	}
	d.ids, d.locker, d.second = make([]int, end), make([]string, end), make([]string, end)
	for k := range d.ids {
		d.ids[k] = noID
	}
	for _, name := range h.names {
		for k := range h.lockedBy(name).All() {
			switch {
			case d.locker[k] == "":
				d.locker[k] = name
			case h.owns(name, k): // if two pods lock it, locker is the one whose id owns it
				d.locker[k], d.second[k] = name, d.locker[k]
			default:
				d.second[k] = name
			}
		}
	}
	if h.owner.Record.State.Row == nil { // the locks are the ownership
		for k, name := range d.locker {
			if name != "" && d.second[k] == "" {
				d.ids[k] = h.pods[name].Receipt.Slot()
			}
		}
		return d
	}
	for id, set := range force.Owners {
		for k := range set.All() {
			d.ids[k] = id
		}
	}
	d.aims, d.known = proposal.Target(h.owner.Count, &force, h.owner.Wish, 0, nil)
	return d
}

// lockedBy returns the partitions that the pod locks. It does not include what an unreadable receipt locks, nor the lock of a strict lost pod that is not in
// the map.
func (h *holding) lockedBy(name string) placement.Set {
	if p := h.pods[name]; p.live() && p.Receipt.State == receipt.Locks && !h.left(p) {
		return p.Receipt.Share.Partitions
	}
	return placement.Set{}
}

// owns reports whether the row gives the partition to the id of this pod.
func (h *holding) owns(name string, k int) bool {
	id := h.pods[name].Receipt.Slot()
	return h.is(h.pods[name], id) && h.inForce().Owners[id].Contains(k)
}

// at returns the share of partition k.
func (d division) at(k int) share {
	id, pod := d.ids[k], d.locker[k]
	switch {
	case d.second[k] != "":
		return share{id, pod, LockedTwice}
	case id == noID && pod != "":
		return share{noID, pod, Stopping}
	case id == noID && k >= d.inForce().Count:
		return share{}
	case id == noID:
		return share{noID, "", Unowned}
	}
	name, locks := d.holder(id)
	switch p := d.pods[name]; {
	case pod != "" && pod != name:
		return share{id, pod, Stopping}
	case name == "":
		return share{id, "", Awaiting}
	case p.abstains() && pod != "": // its work on it has not stopped yet
		return share{id, name, Stopping}
	case p.abstains():
		return share{id, name, Awaiting}
	case pod == "" || !locks:
		return share{id, name, Taking}
	case d.known && id < d.owner.Count && p.Receipt.HandsOver && !d.aims[id].Contains(k):
		return share{id, name, Stopping}
	}
	return share{id, name, Owned}
}

// inForce returns the row of the owner. It is the zero value if there is none, or if it cannot be read.
func (h *holding) inForce() assignment.Row {
	if row := h.owner.Record.State.Row; row != nil {
		return *row
	}
	return assignment.Row{}
}
