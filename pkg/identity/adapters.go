package identity

import (
	"errors"
	"fmt"
	"math"
)

// ErrNotAssigned means that there is no id from which to make a value.
var ErrNotAssigned = errors.New("idalloc: no id is assigned")

// FNV-1a with 64 bits, written out so that Owns does not allocate a hash.Hash64 for every key.
const (
	fnvOffset uint64 = 14695981039346656037
	fnvPrime  uint64 = 1099511628211
)

// Owns reports whether this instance handles key. It does if the 64-bit FNV-1a hash of key modulo Count equals ID. Each key
// has exactly one id below Count, and programs in other languages agree if they use the same hash. While no id is assigned,
// Owns returns false.
//
// When Count changes, most keys move to another id. For a moment two instances may both own a key: one uses the new count,
// and the other has not yet stopped its work by the old one. Do not compare their tokens. A token fences an id, and these
// two act under different ids, so a key may move to an id with a lower token. The package's documentation says what to do
// instead.
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

// SequenceStartIncrement returns START WITH and INCREMENT BY for an SQL sequence: ID+1 and Count. In MySQL these are
// auto_increment_offset and auto_increment_increment. The numbers of different instances never collide as long as Count stays
// the same. ok is false while no id is assigned.
func (i Identity) SequenceStartIncrement() (start, increment int64, ok bool) {
	if !i.Assigned() {
		return 0, 0, false
	}
	return int64(i.ID) + 1, int64(i.Count), true
}

// MachineID16 returns the id as the machine number of a generator of unique ids like Snowflake. It has the signature of
// sonyflake's Settings.MachineID. It returns ErrNotAssigned while no id is assigned, and another error if the id needs more
// than 16 bits.
func (i Identity) MachineID16() (uint16, error) {
	if !i.Assigned() {
		return 0, fmt.Errorf("%w: state is %s", ErrNotAssigned, i.State)
	}
	if i.ID < 0 || i.ID > math.MaxUint16 {
		return 0, fmt.Errorf("idalloc: id %d does not fit into 16 bits: run at most %d replicas", i.ID, math.MaxUint16+1)
	}
	return uint16(i.ID), nil
}
