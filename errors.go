package idalloc

import (
	"errors"
	"fmt"
	"strings"

	"github.com/idalloc/idalloc/pkg/allocator"
)

// These are the causes (see context.Cause) with which Run and RunPartitions end the context of a function. They tell whether the function may still record
// its work, for example by a commit of offsets.
var (
	// ErrRevoked means that the id or the partition goes to another pod. No pod gets it before the function has returned, so there is time to record the
	// work done.
	ErrRevoked = errors.New("idalloc: the id or the partition was revoked")
	// ErrLost means that the id or the partition is already gone, for example because the pod was force-deleted, or because its receipt was removed.
	// Another pod may work on it.
	ErrLost = errors.New("idalloc: the id or the partition was lost")
	// ErrFenced means that there was no contact with the API server for Options.FenceAfter (strict mode). Another pod may soon have the id or the
	// partition. The function must return within ten seconds.
	ErrFenced = errors.New("idalloc: the id or the partition was withdrawn: no contact with the API server")
	// ErrCountChanged means that the id stays, but the count changed.
	ErrCountChanged = errors.New("idalloc: the count changed")
	// ErrClosing means that RunPartitions will return soon. The partition stays with this pod until the function has returned.
	ErrClosing = errors.New("idalloc: the program stops working on partitions")
)

var (
	// ErrClosed means that Close was called.
	ErrClosed = errors.New("idalloc: the instance was closed")
	// ErrNoSlot means that the context of Wait ended before there was an id.
	ErrNoSlot = allocator.ErrNoSlot
)

const name = "idalloc: "

// named prefixes an error of the packages below with the name of the library. Those packages wrap each other's errors, so they add none.
func named(err error) error {
	if err == nil || strings.HasPrefix(err.Error(), name) {
		return err
	}
	return fmt.Errorf(name+"%w", err)
}
