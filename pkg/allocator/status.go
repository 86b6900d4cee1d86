package allocator

import "github.com/idalloc/idalloc/pkg/allocator/store"

// PodUID returns the UID of this pod, by which a successor of the same name is told apart.
func (a *Allocator) PodUID() string { return string(a.o.PodUID) }

// Owner returns the owner that New found.
func (a *Allocator) Owner() store.Ref { return a.ref }

// Fenced reports, by the clock at the call, whether the id that was published last is fenced for lack of contact (strict mode). It is for
// callers that may have been suspended since then. It does not block and may be called from any goroutine.
func (a *Allocator) Fenced() bool { return a.lease.Over() }

// Healthy returns an error if the loop is stuck. Waiting, for an API server that is away as well, is not.
func (a *Allocator) Healthy() error { return a.contact.Healthy() }

// Waiting says what the allocator waits for, empty if for nothing.
func (a *Allocator) Waiting() string { return a.wait.now() }
