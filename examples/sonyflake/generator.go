package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/sony/sonyflake"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/numbers"
)

// tick is the unit of the time in an id.
const tick = 10 * time.Millisecond

// ErrNoID means that this pod holds no id at this moment. Try again, or ask another pod.
var ErrNoID = errors.New("no id is held now")

// Generator makes unique ids while this pod holds its own id. It is safe for concurrent use.
type Generator struct {
	// Start is the time that ids count from, the same for all pods for ever. Zero is the library's own.
	Start time.Time
	// Skew is the most by which two machines' clocks differ.
	Skew  time.Duration
	Clock clock.Clock
	Log   *slog.Logger

	mu      sync.RWMutex
	machine *sonyflake.Sonyflake
	held    func() error
}

// Work lets the generator make ids until ctx ends. It is a function for idalloc.Run. When it returns, no call of Next makes an id with
// this machine id any more.
func (g *Generator) Work(ctx context.Context, id idalloc.Identity) error {
	g.Log.Info("waiting for the clock", "id", id.ID)
	if err := passed(ctx, g.Clock, g.Skew, tick); err != nil {
		return err
	}
	machine, err := sonyflake.New(sonyflake.Settings{StartTime: g.Start, MachineID: func() (uint16, error) { return numbers.MachineID16(id) }})
	if err != nil {
		return fmt.Errorf("id %d: %w", id.ID, err)
	}
	g.Log.Info("working", "id", id.ID)
	g.use(machine, ctx.Err)
	<-ctx.Done()
	g.use(nil, nil)
	return nil
}

// use waits for the calls of Next that are under way.
func (g *Generator) use(machine *sonyflake.Sonyflake, held func() error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.machine, g.held = machine, held
}

// Next returns a new id. It blocks for up to 10 ms if there were 256 in this time unit, and longer if the clock was set back then.
func (g *Generator) Next() (uint64, error) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.machine == nil {
		return 0, ErrNoID
	}
	id, err := g.machine.NextID()
	if err != nil {
		return 0, err
	}
	// Only now: an id that was made before a moment at which this pod holds its own id is this pod's. In strict mode the context knows by
	// the clock that the id is not held any more, before Work can have heard of it.
	if g.held() != nil {
		return 0, ErrNoID
	}
	return id, nil
}
