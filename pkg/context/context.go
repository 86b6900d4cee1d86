// Package context is another name for what a Go program needs to hold an id, without partitions: see package github.com/idalloc/idalloc.
package context

import (
	"context"

	"github.com/idalloc/idalloc"
)

type (
	// Identity is idalloc.Identity.
	Identity = idalloc.Identity
	// Instance is idalloc.Instance.
	Instance = idalloc.Instance
	// Options are idalloc.Options.
	Options = idalloc.Options
	// Stopping is idalloc.Stopping.
	Stopping = idalloc.Stopping
)

var (
	// ErrRevoked is idalloc.ErrRevoked.
	ErrRevoked = idalloc.ErrRevoked
	// ErrLost is idalloc.ErrLost.
	ErrLost = idalloc.ErrLost
	// ErrCountChanged is idalloc.ErrCountChanged.
	ErrCountChanged = idalloc.ErrCountChanged
	// ErrFenced is idalloc.ErrFenced.
	ErrFenced = idalloc.ErrFenced
	// ErrClosed is idalloc.ErrClosed.
	ErrClosed = idalloc.ErrClosed
	// ErrNoSlot is idalloc.ErrNoSlot.
	ErrNoSlot = idalloc.ErrNoSlot
)

// Run is idalloc.Run.
func Run(ctx context.Context, o Options, fn func(ctx context.Context, id Identity) error) error {
	return idalloc.Run(ctx, o, fn)
}

// Start is idalloc.Start.
func Start(ctx context.Context, o Options) (*Instance, error) { return idalloc.Start(ctx, o) }
