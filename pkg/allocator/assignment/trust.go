package assignment

// Trust says how far the map on an owner is believed. Package store decides it once, when it reads the owner, from the
// seal and from metadata.managedFields. All other code uses its answer.
type Trust int

// The values, from no trust to full trust.
const (
	// Absent: the owner has none of idalloc's annotations. It is new, or somebody removed them all. Only receipts count.
	Absent Trust = iota
	// Foreign: somebody else wrote last, or the seal does not fit. Only receipts count, and the pods restore the map
	// from them.
	Foreign
	// Unreadable: idalloc wrote the map, but in a later format or under another annotation key. Nobody changes it.
	Unreadable
	// Untracked: the seal fits, but managedFields do not say who wrote it. The entries count. But somebody may have
	// brought back an old map, so a pod that takes a slot also compares the epoch and looks for other pods' receipts.
	Untracked
	// Clean: the seal fits, and idalloc wrote last. The entries count, and a slot without an entry is free if no
	// receipt names it.
	Clean
)

// Believed reports whether the entries of the map count.
func (t Trust) Believed() bool { return t >= Untracked }

// String returns the word in lower case.
func (t Trust) String() string {
	return [...]string{"absent", "foreign", "unreadable", "untracked", "clean"}[t]
}
