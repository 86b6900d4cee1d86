package allocator

import "github.com/idalloc/idalloc/pkg/allocator/kinds"

// PodUID returns the UID of this pod. It distinguishes the pod from a successor of the same name.
func (a *Allocator) PodUID() string { return string(a.o.PodUID) }

// Owner returns the owner that New found.
func (a *Allocator) Owner() kinds.Ref { return a.ref }

// Fenced reports whether the last published id is fenced for lack of contact (strict mode), by the clock at the call. It is for callers that may have been
// suspended since then. It does not block and may be called from any goroutine.
func (a *Allocator) Fenced() bool { return a.lease.Over() }

// Healthy returns an error if the loop is stuck. Waiting is healthy, even for an unreachable API server.
func (a *Allocator) Healthy() error { return a.contact.Healthy() }

// Waiting returns what the allocator waits for, empty if nothing.
func (a *Allocator) Waiting() string { return a.wait.now() }
