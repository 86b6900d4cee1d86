package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/bwmarrin/snowflake"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc"
)

// tick is the unit of the time in an id.
const tick = time.Millisecond

// ErrNoID means that this pod holds no id at this moment. Try again, or ask another pod.
var ErrNoID = errors.New("no id is held now")

// Generator makes unique ids while this pod holds its own id. It is safe for concurrent use.
type Generator struct {
	// Skew is the most by which two machines' clocks differ.
	Skew  time.Duration
	Clock clock.Clock
	Log   *slog.Logger

	mu   sync.RWMutex
	node *snowflake.Node
	held func() error
}

// Work lets the generator make ids until ctx ends. It is a function for idalloc.Run. When it returns, no call of Next makes an id with
// this node number any more.
func (g *Generator) Work(ctx context.Context, id idalloc.Identity) error {
	g.Log.Info("waiting for the clock", "id", id.ID)
	if err := passed(ctx, g.Clock, g.Skew, tick); err != nil {
		return err
	}
	// Only now: a node takes the time from the clock when it is made, and counts on by itself.
	node, err := snowflake.NewNode(int64(id.ID))
	if err != nil {
		return fmt.Errorf("id %d cannot be a node number, run at most 1024 replicas: %w", id.ID, err)
	}
	g.Log.Info("working", "id", id.ID)
	g.use(node, ctx.Err)
	<-ctx.Done()
	g.use(nil, nil)
	return nil
}

// use waits for the calls of Next that are under way.
func (g *Generator) use(node *snowflake.Node, held func() error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.node, g.held = node, held
}

// Next returns a new id.
func (g *Generator) Next() (snowflake.ID, error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.node == nil {
		return 0, ErrNoID
	}
	id := g.node.Generate()
	// Only now: an id that was made before a moment at which this pod holds its own id is this pod's. In strict mode the context knows by
	// the clock that the id is not held any more, before Work can have heard of it.
	if g.held() != nil {
		return 0, ErrNoID
	}
	return id, nil
}
