package partition

import (
	"context"
	"errors"
	"slices"

	idcontext "github.com/idalloc/idalloc/pkg/context"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// The cause of a call's context says why it ended, and so whether the work may still be recorded, for example by a commit of
// offsets.
var (
	// ErrRevoked means that another id is to have the partition, or the id. Nobody works on it before the call has returned, so there
	// is time to record what was done.
	ErrRevoked = errors.New("idalloc: the partition was revoked")
	// ErrLost means that the partition, or the id, is gone already, because somebody changed the map. Another pod may work on it.
	ErrLost = errors.New("idalloc: the partition was lost")
	// ErrFenced means that there was no contact with the API server for Options.FenceAfter (strict mode). Another pod may work on the
	// partition soon. The call must return within ten seconds.
	ErrFenced = errors.New("idalloc: the partition was withdrawn: no contact with the API server")
	// ErrClosing means that Run is about to return. The partition stays with this pod until the call has returned.
	ErrClosing = errors.New("idalloc: the program stops working on partitions")
)

// Set is a set of partitions. It prints as "0-15,40".
type Set = placement.Set

// Partition is one partition on which this process works.
type Partition struct {
	// Number is in [0, Count).
	Number int
	// Count is the number of partitions of the workload.
	Count int
	// Token is a fencing token. It stays the same as long as this process works on the partition. Each later pod has a higher one; the
	// next process of the same pod may have the same.
	Token int64
	// Instance is the identity under which the process works on it. It has no partitions, so that it stays the same when others move.
	Instance identity.Identity
}

// Options configure Run and Start. In a pod with the downward API, the zero value works. The embedded options are those of package
// context. KeepOnCountChange has no effect here: partitions that stay are not disturbed when the number of replicas changes.
type Options struct {
	idcontext.Options
	// Changed is only for Run. It is called with the identity of this pod after each change, in one goroutine. It must not block for
	// long. A program is ready when the identity is assigned, and not only when there are partitions: with fewer partitions than
	// pods, a rollout would not end.
	Changed func(identity.Identity)
	// Stop is only for Start. It blocks until the work on these partitions has stopped, or until its context ends. It is called
	// when Owned does not return them any more, one call at a time. Unless they are lost, they stay with this pod until it returns nil. After an
	// error it is called again. If the context ends first, the work may go on, and Owned says with what. If Stopped is not set, Stop is also
	// called, with all partitions, before the id is given away.
	//
	// If it is nil, nobody can know when work has stopped. Then this pod's partitions move only together with its id.
	Stop func(context.Context, Set) error
	// Strategies are strategies of this program, by the name that the user writes to idalloc.dev/partition-strategy. All pods of the
	// workload must have the same. A pod that does not know the strategy in force keeps its partitions and moves none.
	Strategies map[string]placement.Strategy
}

// owned returns the partitions on which work may go on, in ascending order.
func owned(id identity.Identity) []Partition {
	var all []Partition
	shares, count := id.Partitions.Shares(), id.Partitions.Count
	id.Partitions = identity.Partitions{}
	for _, share := range shares {
		for k := range share.Set.All() {
			all = append(all, Partition{Number: k, Count: count, Token: share.Token, Instance: id})
		}
	}
	slices.SortFunc(all, func(a, b Partition) int { return a.Number - b.Number })
	return all
}

// withdrawn returns why no work goes on under an identity that is not assigned.
func withdrawn(state identity.State) error {
	switch state {
	case identity.StateFenced:
		return ErrFenced
	case identity.StateDraining:
		return ErrRevoked
	default:
		return ErrLost
	}
}
