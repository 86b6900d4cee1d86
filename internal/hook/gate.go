package hook

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrNothingToDrain means that nobody waits for the workload's word.
var ErrNothingToDrain = errors.New("nothing to drain")

// Gate is where one side waits for the workload's word that it has stopped. It is open while an id is
// being given up; a word counts for the episode in which it came. The zero value is closed. It is safe for concurrent
// use.
type Gate struct {
	mu    sync.Mutex
	open  bool
	epoch int64 // of the id that is given up, 0 if it is not known
	// stopped is closed by the word of the newest episode.
	stopped chan struct{}
	heard   bool
}

// Open begins an episode, in which the id of this epoch is given up; 0 is an epoch that nobody knows.
// It does nothing while the gate is open.
func (g *Gate) Open(epoch int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open {
		return
	}
	g.open, g.epoch, g.heard = true, epoch, false
	g.stopped = make(chan struct{})
}

// Close ends the episode: the id is in use again, or given away. A word that came is forgotten.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = false
}

// Drained is the workload's word that it has stopped using the id of this epoch; 0 is whatever id it
// had. Saying it again is no error. The error wraps ErrNothingToDrain: nothing is being given up,
// or the id of another epoch.
func (g *Gate) Drained(epoch int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.open {
		return fmt.Errorf("%w: no id is being given up; post when the state is draining and the work has stopped", ErrNothingToDrain)
	}
	if epoch != 0 && g.epoch != 0 && epoch != g.epoch {
		return fmt.Errorf("%w of epoch %d: the id that is being given up has epoch %d", ErrNothingToDrain, epoch, g.epoch)
	}
	if !g.heard {
		g.heard = true
		close(g.stopped)
	}
	return nil
}

// Wait blocks until the workload's word came in the episode that is open now, or ctx ends; then it
// returns the cause.
func (g *Gate) Wait(ctx context.Context) error {
	g.mu.Lock()
	stopped := g.stopped
	if !g.open {
		stopped = nil // a word of an episode that is over does not count
	}
	g.mu.Unlock()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
