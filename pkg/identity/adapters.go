package identity

import (
	"errors"
	"fmt"
	"math"
)

// ErrNotAssigned is returned where a value would need an id and there is none.
var ErrNotAssigned = errors.New("idalloc: no id is assigned")

// FNV-1a with 64 bits, written out so that Owns does not allocate a hash.Hash64 for every key.
const (
	fnvOffset uint64 = 14695981039346656037
	fnvPrime  uint64 = 1099511628211
)

// Owns reports whether this instance is the one to handle key: the FNV-1a 64 hash of key modulo
// Count is ID. For every key exactly one of the ids below Count owns it, and every process in every
// language that uses the same hash agrees. It is false while no id is assigned.
//
// When Count changes, most keys change their owner, and for a moment two instances may both own a key:
// one goes by the new count, the other has not stopped working by the old one. Do not compare epochs
// then. An epoch fences an id, and these two act under different ids: a key may move to an id with a
// lower epoch. What to do instead: see the package's documentation.
func (i Identity) Owns(key []byte) bool {
	if !i.Assigned() || i.ID < 0 || i.Count <= 0 {
		return false
	}
	h := fnvOffset
	for _, b := range key {
		h = (h ^ uint64(b)) * fnvPrime
	}
	return h%uint64(i.Count) == uint64(i.ID)
}

// SequenceStartIncrement returns START WITH and INCREMENT BY for an SQL sequence (or MySQL's
// auto_increment_offset and auto_increment_increment), so that the instances draw numbers that never
// collide as long as Count stays the same: id+1 and count. It is false while no id is assigned.
func (i Identity) SequenceStartIncrement() (start, increment int64, ok bool) {
	if !i.Assigned() {
		return 0, 0, false
	}
	return int64(i.ID) + 1, int64(i.Count), true
}

// MachineID16 returns the id as the machine number of a Snowflake-like generator of unique ids
// (sonyflake's MachineID, for one, has this signature). It is ErrNotAssigned while no id is assigned,
// and an error when the id needs more than 16 bits.
func (i Identity) MachineID16() (uint16, error) {
	if !i.Assigned() {
		return 0, fmt.Errorf("%w: state is %s", ErrNotAssigned, i.State)
	}
	if i.ID < 0 || i.ID > math.MaxUint16 {
		return 0, fmt.Errorf("idalloc: id %d does not fit into 16 bits: run at most %d replicas", i.ID, math.MaxUint16+1)
	}
	return uint16(i.ID), nil
}
