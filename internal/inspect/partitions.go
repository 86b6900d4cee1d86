package inspect

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/placement"
)

// PartitionRange is a row of a PartitionView: consecutive partitions with the same state.
type PartitionRange struct {
	// Partitions is the range, such as 0-15 or 40. It is empty in a row about a paused pod.
	Partitions string         `json:"partitions"`
	ID         *int           `json:"id,omitempty"`
	Pod        string         `json:"pod,omitempty"`
	Node       string         `json:"node,omitempty"`
	State      PartitionState `json:"state"`
	// Since is a time since which the state has been the same, at least. Nothing stored tells when a partition came into its state. It is nil if no such time
	// is known.
	Since *metav1.Time `json:"since,omitempty"`
}

// PartitionView shows who works on which partitions of an owner at one moment.
type PartitionView struct {
	Owner     string `json:"owner"`
	Namespace string `json:"namespace"`
	// Count is the number of partitions in force, and Strategy the name of the strategy in force.
	Count    int              `json:"count"`
	Strategy string           `json:"strategy,omitempty"`
	Ranges   []PartitionRange `json:"ranges"`
	// Problems are the annotations that cannot be read or are not in force.
	Problems []string `json:"problems,omitempty"`
	// wanted is the number of partitions that the user asks for.
	wanted int
}

// ReadPartitions is like Read, for partitions. Errors: as of Read.
func ReadPartitions(ctx context.Context, s *store.Store, ref kinds.Ref) (PartitionView, error) {
	now, err := read(ctx, s, ref)
	if err != nil {
		return PartitionView{}, err
	}
	return factsOf(now).partitionView(), nil
}

func (f *facts) partitionView() PartitionView {
	owner, d := f.owner, f.division
	v := PartitionView{Owner: owner.String(), Namespace: owner.Namespace, Ranges: []PartitionRange{}, wanted: owner.Wish.Count}
	v.Count, v.Strategy = f.inForce().Count, f.inForce().Strategy
	for _, problems := range [][]assignment.ProblemError{owner.Record.Problems, owner.Wish.Problems} {
		for _, p := range problems {
			v.Problems = append(v.Problems, p.Error())
		}
	}
	v.Problems = append(v.Problems, f.sayAll(wishRows())...)
	for k := 0; k < len(d.ids); {
		r, to := d.at(k), k
		for to+1 < len(d.ids) && d.at(to+1) == r {
			to++
		}
		if r != (share{}) {
			v.Ranges = append(v.Ranges, f.partitionRange(placement.Between(k, to), r))
		}
		k = to + 1
	}
	for _, id := range f.paused() {
		name, _ := d.holder(id)
		v.Ranges = append(v.Ranges, f.partitionRange(placement.Set{}, share{id, name, Paused}))
	}
	return v
}

func (f *facts) partitionRange(set placement.Set, s share) PartitionRange {
	r := PartitionRange{Partitions: set.String(), Pod: s.pod, State: s.state}
	if s.id != noID {
		r.ID = &s.id
	}
	if p, exists := f.pods[s.pod]; exists {
		r.Node = p.node
	}
	if since := f.since(s); !since.IsZero() {
		r.Since = new(metav1.NewTime(since))
	}
	return r
}

// since returns a time since which s has been true, at least, or the zero time.
//
//   - A receipt has contained its lock since it was last written. The partition belonged to the id all that time, because no partition leaves an id while a
//     receipt locks it.
//   - The row has named no id for the partition, or the map no pod for the id, since idalloc last wrote the owner.
//
// Nothing tells when a holder died, or when a pod's target changed.
func (f *facts) since(s share) time.Time {
	_, taken := f.owner.Record.State.Slots[s.id]
	switch {
	case s.state == Owned || s.state == Paused:
		return f.pods[s.pod].written
	case s.state == Unowned && f.owner.Record.State.Row != nil, s.state == Awaiting && !taken:
		return f.written
	}
	return time.Time{}
}
