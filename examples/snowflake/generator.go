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
	ahead := g.Skew
	for {
		g.Log.Info("waiting for the clock", "id", id.ID, "ahead", ahead)
		err := passed(ctx, g.Clock, ahead, tick)
		if err != nil {
			return err
		}
		if ahead, err = g.work(ctx, id); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// work lets the generator make ids until ctx ends, or the clock is set back. It returns by how much the ids that were made are ahead
// of the clock: by that clock the next holder of the number waits.
func (g *Generator) work(ctx context.Context, id idalloc.Identity) (ahead time.Duration, err error) {
	// Only now: a node takes the time from the clock when it is made, and counts on by itself, whatever the clock does.
	begin := startOf(g.Clock)
	node, err := snowflake.NewNode(int64(id.ID))
	if err != nil {
		return 0, fmt.Errorf("id %d cannot be a node number, run at most 1024 replicas: %w", id.ID, err)
	}
	g.Log.Info("working", "id", id.ID)
	working, setBack := context.WithCancel(ctx)
	defer setBack()
	g.use(node, func() error {
		if begin.ahead() > tick {
			setBack()
		}
		return working.Err()
	})
	<-working.Done()
	g.use(nil, nil)
	return begin.ahead(), nil
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
