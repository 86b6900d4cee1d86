package world

import (
	"slices"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// Woes are what goes wrong beside the network and the machines.
type Woes struct {
	// Hangs are partitions on which work does not stop when it is told to.
	Hangs map[int]bool
	// Undoes are the keys of the owner whose changes by idalloc another client undoes, each time.
	Undoes []string
	// Unauthorized says that the server accepts no token.
	Unauthorized bool
	// Uncollected says that no collector removes what belongs to an owner that is gone.
	Uncollected bool
}

// undo has another client undo what one of ours has just written on the owner, as a tool does that knows how the owner ought to be. It does so each
// time, a moment later, for as long as Undoes says.
func (w *World) undo(v *server.Version) {
	if w.Serving == nil || v.Name != OwnerName || !v.Exists() || !v.Before.Exists() {
		return
	}
	undone := slices.DeleteFunc(slices.Clone(w.Undoes), func(key string) bool {
		return object.Annotation(v.Object, key) == object.Annotation(v.Before.Object, key)
	})
	if len(undone) == 0 {
		return
	}
	before := v.Before.Object
	w.After(w.Dice("undo", strconv.FormatInt(v.RV, 10)).Tail(30*time.Millisecond), func() {
		if len(w.Undoes) == 0 {
			return
		}
		w.Faults["undone write"]++
		w.ChangeOwner(server.Writer{Manager: "kubectl-edit"}, func(o object.Object) {
			for _, key := range undone {
				object.SetText(o, "annotations", key, object.Annotation(before, key))
			}
		})
	})
}
