package serve

import (
	"sync"

	"github.com/idalloc/idalloc/pkg/identity"
)

// Snapshot is the content of a Hub at one moment.
type Snapshot struct {
	identity.Identity
	// Stale: the API server cannot be reached, so the identity may be old. It is still the one to act on.
	Stale bool
	// Version grows with every change of the identity. Changes of Stale do not count.
	Version uint64
}

// Hub holds the newest identity for any number of readers. It is safe for concurrent use.
type Hub struct {
	mu      sync.Mutex
	now     Snapshot
	changed chan struct{}
	fenced  func() bool
}

// NewHub returns a Hub with this identity, usually a pending one with the pod's name.
func NewHub(initial identity.Identity) *Hub {
	return &Hub{now: Snapshot{Identity: initial}, changed: make(chan struct{})}
}

// Set replaces the identity. If the identity changed, Set wakes all readers that wait for a change.
func (h *Hub) Set(id identity.Identity) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now.Identity == id {
		return
	}
	h.now.Identity = id
	h.now.Version++
	close(h.changed)
	h.changed = make(chan struct{})
}

// SetStale sets Snapshot.Stale. It wakes no reader.
func (h *Hub) SetStale(stale bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now.Stale = stale
}

// CheckFenced makes every Get call fenced, which reports whether the deadline of the id has passed. A process that was suspended finds that out only when it
// answers. fenced must not block and must not call the Hub. Call CheckFenced before the Hub has readers.
func (h *Hub) CheckFenced(fenced func() bool) { h.fenced = fenced }

// Get returns the content of the Hub.
func (h *Hub) Get() Snapshot {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now
	if now.Assigned() && h.fenced != nil && h.fenced() {
		now.Identity = now.Without(identity.StateFenced)
	}
	return now
}

// Changed returns a channel that is closed once the Hub's version is higher than since. It may already be closed.
func (h *Hub) Changed(since uint64) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now.Version > since {
		done := make(chan struct{})
		close(done)
		return done
	}
	return h.changed
}
