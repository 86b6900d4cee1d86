package identity

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
