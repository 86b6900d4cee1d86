package assignment

// Trust says how far the map on an owner is believed. package store finds it out when it reads the owner, from the seal and from
// metadata.managedFields. Everybody else asks for the word.
type Trust int

// From none to all.
const (
	// Absent: none of idalloc's annotations is there. The owner is new, or somebody removed them all. Only receipts count.
	Absent Trust = iota
	// Foreign: somebody else wrote last, or the seal does not fit. Only receipts count, and the pods restore the map from them.
	Foreign
	// Unreadable: idalloc wrote it, in a later format or under another annotation key. It is left as it is.
	Unreadable
	// Untracked: the seal fits, and nobody tracks who wrote it. The entries count, but anybody may have brought an old map back:
	// its epoch tells, and a pod that takes a slot looks for another pod's receipt.
	Untracked
	// Clean: the seal fits, and idalloc wrote it last. Entries count, and a slot without one is free if no receipt names it.
	Clean
)

// Believed reports whether the map's entries count.
func (t Trust) Believed() bool { return t >= Untracked }

// String returns the word in lower case.
func (t Trust) String() string {
	return [...]string{"absent", "foreign", "unreadable", "untracked", "clean"}[t]
}
