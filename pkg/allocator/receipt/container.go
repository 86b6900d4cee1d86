package receipt

// The keys of pods whose slots the controller takes.
const (
	// Gate is the scheduling gate behind which the pod waits for its id.
	Gate = "idalloc.dev/id"
	// IDKey, CountKey, StartCountKey and IdentityKey are annotations that provide the container's environment and files.
	IDKey         = "idalloc.dev/id"
	CountKey      = "idalloc.dev/count"
	StartCountKey = "idalloc.dev/start-count"
	IdentityKey   = "idalloc.dev/identity"
	// TurnKey records what a pod had when its count turn began. It stays until the turn has ended.
	TurnKey = "idalloc.dev/turn"
	// NumberKey is the machine number of a pod that asks for one.
	NumberKey = "idalloc.dev/number"
)
