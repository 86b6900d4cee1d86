package inspect

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store"
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
	Unowned PartitionState = "nobody"
	// Paused: the pod that has the id works on no partitions, and other ids get what it owns. Such a row is about the id, and has no partitions.
	Paused PartitionState = "paused"
	// LockedTwice: the receipts of several live pods lock the partition.
	// Do: run `verify` if it stays.
	LockedTwice PartitionState = "duplicate"
)

// PartitionRange is a row of a PartitionView: partitions in sequence about which the same can be said.
type PartitionRange struct {
	// Partitions is the range, such as 0-15 or 40. It is empty in a row about a pod that is paused.
	Partitions string         `json:"partitions"`
	ID         *int           `json:"id,omitempty"`
	Pod        string         `json:"pod,omitempty"`
	Node       string         `json:"node,omitempty"`
	State      PartitionState `json:"state"`
	// Since is a time from which the state has been the same. It may have been so for longer: nothing that is stored says when a
	// partition came into its state. It is nil where not even that is known.
	Since *metav1.Time `json:"since,omitempty"`
}

// PartitionView says who works on which partitions of an owner at one moment.
type PartitionView struct {
	Owner     string `json:"owner"`
	Namespace string `json:"namespace"`
	// Count is the number of partitions and Strategy the name of the strategy that are in force.
	Count    int              `json:"count"`
	Strategy string           `json:"strategy,omitempty"`
	Ranges   []PartitionRange `json:"ranges"`
	// Problems say which annotations cannot be read or are not in force.
	Problems []string `json:"problems,omitempty"`
	// wanted is the number of partitions that the user asks for.
	wanted int
}

// ReadPartitions is Read for partitions. Errors: as of Read.
func ReadPartitions(ctx context.Context, s *store.Store, ref store.Ref) (PartitionView, error) {
	now, err := read(ctx, s, ref)
	if err != nil {
		return PartitionView{}, err
	}
	return now.partitionView(), nil
}

func (n snapshot) partitionView() PartitionView {
	owner, d := n.owner, n.holding().divide()
	v := PartitionView{Owner: owner.String(), Namespace: owner.Namespace, Ranges: []PartitionRange{}, wanted: owner.Wish.Count}
	v.Count, v.Strategy = n.inForce().Count, n.inForce().Strategy
	for _, problems := range [][]assignment.ProblemError{owner.Record.Problems, owner.Wish.Problems} {
		for _, p := range problems {
			v.Problems = append(v.Problems, p.Error())
		}
	}
	if what := d.unmet(); what != "" {
		v.Problems = append(v.Problems, what)
	}
	for k := 0; k < len(d.ids); {
		r, to := d.at(k), k
		for to+1 < len(d.ids) && d.at(to+1) == r {
			to++
		}
		if r != (share{}) {
			v.Ranges = append(v.Ranges, n.partitionRange(placement.Between(k, to), r))
		}
		k = to + 1
	}
	for _, id := range d.paused() {
		name, _ := d.holder(id)
		v.Ranges = append(v.Ranges, n.partitionRange(placement.Set{}, share{id, name, Paused}))
	}
	return v
}

// paused returns the ids below the count whose pods work on no partitions although there are some, in ascending order.
func (h holding) paused() (ids []int) {
	for id := range h.lockers {
		if name, _ := h.holder(id); id < h.owner.Count && h.inForce().Count > 0 && h.pods[name].abstains() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (n snapshot) partitionRange(set placement.Set, s share) PartitionRange {
	r := PartitionRange{Partitions: set.String(), Pod: s.pod, State: s.state}
	if s.id != nobody {
		r.ID = &s.id
	}
	if p, exists := n.pods[s.pod]; exists {
		r.Node = p.node
	}
	if since := n.since(s); !since.IsZero() {
		at := metav1.NewTime(since)
		r.Since = &at
	}
	return r
}

// since returns a time from which what s says has been so.
//
//   - A lock stands in the receipt, and has stood there since it was written last. The partition belonged to the id all that time, because
//     none leaves an id while a receipt locks it.
//   - The row names nobody for the partition, or the map nobody for the id, since idalloc wrote the owner last.
//
// Nothing says when a holder died, or when the target of a pod changed.
func (n snapshot) since(s share) time.Time {
	_, taken := n.owner.Record.State.Slots[s.id]
	switch {
	case s.state == Owned || s.state == Paused:
		return n.pods[s.pod].written
	case s.state == Unowned && n.owner.Record.State.Row != nil, s.state == Awaiting && !taken:
		return n.written
	}
	return time.Time{}
}

// nobody stands for the id of a partition that no id owns.
const nobody = -1

// division says of each partition who owns it and who locks it.
type division struct {
	holding
	// ids is the id that owns each partition, or nobody. The other two are the pods whose receipts lock it, empty if there are none.
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
func (h holding) divide() division {
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
		d.ids[k] = nobody
	}
	for _, name := range h.names() {
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
func (n snapshot) lockedBy(name string) placement.Set {
	if p := n.pods[name]; p.live() && p.Receipt.State == receipt.Locks && !n.left(p) {
		return p.Receipt.Share.Partitions
	}
	return placement.Set{}
}

// owns reports whether the row gives the partition to the id of this pod.
func (h holding) owns(name string, k int) bool {
	id := h.pods[name].Receipt.Slot()
	return h.is(h.pods[name], id) && h.inForce().Owners[id].Contains(k)
}

// at says what can be said of partition k.
func (d division) at(k int) share {
	id, pod := d.ids[k], d.locker[k]
	switch {
	case d.second[k] != "":
		return share{id, pod, LockedTwice}
	case id == nobody && pod != "":
		return share{nobody, pod, Stopping}
	case id == nobody && k >= d.inForce().Count:
		return share{}
	case id == nobody:
		return share{nobody, "", Unowned}
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
func (n snapshot) inForce() assignment.Row {
	if row := n.owner.Record.State.Row; row != nil {
		return *row
	}
	return assignment.Row{}
}
