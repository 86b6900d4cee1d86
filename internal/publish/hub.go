package publish

import (
	"sync"

	"github.com/idalloc/idalloc/pkg/identity"
)

// Snapshot is what a Hub held at one moment.
type Snapshot struct {
	identity.Identity
	// Stale: the API server could not be reached of late, so the identity may be outdated. It is
	// still the one to act on.
	Stale bool
	// Version grows with every change of the identity; Stale alone does not count.
	Version uint64
}

// Hub holds the newest identity for any number of readers. It is safe for concurrent use.
type Hub struct {
	mu      sync.Mutex
	now     Snapshot
	changed chan struct{}
	fenced  func() bool
}

// NewHub returns a Hub that holds initial, usually a pending identity that names the pod.
func NewHub(initial identity.Identity) *Hub {
	return &Hub{now: Snapshot{Identity: initial}, changed: make(chan struct{})}
}

// Set replaces the identity and wakes those who wait for a change, if it is one.
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

// SetStale says whether the identity may be outdated. It wakes nobody.
func (h *Hub) SetStale(stale bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now.Stale = stale
}

// CheckFenced makes every Get ask whether the id that was set last is given up for lack of contact,
// whatever Set was told: a process that was suspended has to find out by a clock at the moment it
// answers. fenced must not block and not call the Hub. Call it before the Hub has readers.
func (h *Hub) CheckFenced(fenced func() bool) { h.fenced = fenced }

// Get returns what the Hub holds.
func (h *Hub) Get() Snapshot {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now
	if now.Assigned() && h.fenced != nil && h.fenced() {
		now.Identity = now.Without(identity.StateFenced)
	}
	return now
}

// Changed returns a channel that is closed once the Hub's version is higher than since; it is closed
// already if that is so now.
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
