package allocator

import (
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/idalloc/idalloc/pkg/allocator/store"
)

// held is the slot that this process holds.
type held struct {
	id    int
	token int64
	// since is when it was taken.
	since time.Time
	// view is the newest moment of the owner that this process knows.
	view store.Owner
	// after is the resourceVersion that the owner's stream must reach before it counts: until then
	// it lags behind what this process read or wrote.
	after string
}

// adopt takes in a moment of the owner that this process read or wrote.
func (h *held) adopt(owner store.Owner) { h.view, h.after = owner, owner.ResourceVersion }

// hear takes in a moment of the owner that a stream has, unless it is older than what is known.
func (h *held) hear(owner store.Owner) {
	if h.after != "" {
		order, err := resourceversion.CompareResourceVersion(owner.ResourceVersion, h.after)
		if err == nil && order < 0 && owner.UID == h.view.UID {
			return
		}
		h.after = ""
	}
	h.view = owner
}
