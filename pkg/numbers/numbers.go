// Package numbers converts an identity to numbers that other software asks for. Its API is stable: any program may rely on it.
package numbers

import (
	"errors"
	"fmt"
	"math"

	"github.com/idalloc/idalloc/pkg/identity"
)

// ErrNotAssigned means that no number can be made, because no id is assigned.
var ErrNotAssigned = errors.New("no id is assigned")

// SequenceStartIncrement returns START WITH and INCREMENT BY for an SQL sequence: ID+1 and Count. In MySQL these are auto_increment_offset and
// auto_increment_increment. The numbers of different instances never collide while Count stays the same. ok is false while no id is assigned.
func SequenceStartIncrement(i identity.Identity) (start, increment int64, ok bool) {
	if !i.Assigned() {
		return 0, 0, false
	}
	return int64(i.ID) + 1, int64(i.Count), true
}

// MachineID16 returns the id as the machine number of a generator of unique ids like Snowflake. It returns ErrNotAssigned
// while no id is assigned, and another error if the id needs more than 16 bits.
func MachineID16(i identity.Identity) (uint16, error) {
	if !i.Assigned() {
		return 0, fmt.Errorf("%w: state is %s", ErrNotAssigned, i.State)
	}
	if i.ID < 0 || i.ID > math.MaxUint16 {
		return 0, fmt.Errorf("id %d does not fit into 16 bits: run at most %d replicas", i.ID, math.MaxUint16+1)
	}
	return uint16(i.ID), nil
}
