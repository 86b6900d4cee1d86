package idalloc

import (
	"errors"

	"github.com/idalloc/idalloc/pkg/allocator"
)

// The cause of the context of a function that Run or RunPartitions has called says why it ended, and so whether the work may still be recorded,
// for example by a commit of offsets.
var (
	// ErrRevoked means that the id or the partition goes to another pod. Nobody gets it before the function has returned, so there is time
	// to record what was done. Only Run says it of an id that is lost as well.
	ErrRevoked = errors.New("idalloc: the id or the partition was revoked")
	// ErrLost means that the partition, or the id with it, is gone already, because somebody changed the map. Another pod may work on it.
	ErrLost = errors.New("idalloc: the partition was lost")
	// ErrFenced means that there was no contact with the API server for Options.FenceAfter (strict mode). Another pod may have the id or
	// the partition soon. The function must return within ten seconds.
	ErrFenced = errors.New("idalloc: the id or the partition was withdrawn: no contact with the API server")
	// ErrCountChanged means that the id stays and the count changes.
	ErrCountChanged = errors.New("idalloc: the count changed")
	// ErrClosing means that RunPartitions is about to return. The partition stays with this pod until the function has returned.
	ErrClosing = errors.New("idalloc: the program stops working on partitions")
)

var (
	// ErrClosed means that somebody called Close.
	ErrClosed = errors.New("idalloc: the instance was closed")
	// ErrNoSlot means that the context of Wait ended before there was an id.
	ErrNoSlot = allocator.ErrNoSlot
)
