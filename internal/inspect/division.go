package inspect

import (
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
)

// PartitionState is the state of a partition as it can be seen from outside.
type PartitionState string

// The states of a partition.
const (
	// Owned: a live pod has the id that owns the partition, and its receipt locks the partition.
	Owned PartitionState = "owned"
	// Stopping: a pod's receipt locks the partition, and the pod is to stop its work on it, because another id is to have it.
	// Do: run `verify` if it stays.
	Stopping PartitionState = "stopping"
	// Taking: the pod that has the id does not lock the partition yet.
	// Do: run `verify` if it stays.
	Taking PartitionState = "taking"
	// Awaiting: the id that owns the partition has no live pod that works on partitions. The partition waits for the id's next holder, and after
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

// division says of each partition who owns it and who locks it.
type division struct {
	*holding
	// ids is the id that owns each partition, or noID. The other two are the pods whose receipts lock it, empty if there are none.
	// If more than two pods lock a partition, second is one of them.
	ids            []int
	locker, second []string
	// aims is what the strategy in force gives to each id. known says that this can be told.
	aims  placement.Owners
	known bool
}

// share is what can be said of a partition. The zero value stands for one that does not exist.
type share struct {
	id    int
	pod   string
	state PartitionState
}

// divide says of each partition who owns it and who locks it.
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
			case h.owns(name, k): // of two, the first has the partition
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

// lockedBy returns the partitions that the pod locks. What an unreadable receipt locks is not among them. A lost pod that the map does not
// name locks none.
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

// at says what can be said of partition k.
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

// inForce returns what the owner says about partitions. It is the zero value if that is nothing, or if it cannot be read.
func (h *holding) inForce() assignment.Row {
	if row := h.owner.Record.State.Row; row != nil {
		return *row
	}
	return assignment.Row{}
}
