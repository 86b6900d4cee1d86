package hook

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrNothingToDrain means that nobody waits for this report.
var ErrNothingToDrain = errors.New("nothing to drain")

// Gate passes on the program's report that it has stopped using the id. It is open while the pod gives an id away. A report only counts
// until the gate is closed. The zero value is closed. It is safe for concurrent use.
type Gate struct {
	mu    sync.Mutex
	open  bool
	epoch int64 // the epoch of the id that the pod gives away, 0 if it is not known
	stop  int   // the number of the stop, 0 if it has none
	// stopped is made by Open, and closed by the report.
	stopped chan struct{}
	heard   bool
}

// Open opens the gate. epoch is that of the id that the pod gives away, or 0 if it is not known, and stop the number of the stop. Open
// does nothing if the gate is open.
func (g *Gate) Open(epoch int64, stop int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open {
		return
	}
	g.open, g.epoch, g.stop, g.heard = true, epoch, stop, false
	g.stopped = make(chan struct{})
}

// Close closes the gate and forgets the report. Call it when the id is in use again, or given away.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = false
}

// Drained reports that the program has stopped using the id of this epoch, as the answer to the stop of this number. 0 stands for any
// epoch, and for any stop. A second report is no error. Drained does not block. The error wraps ErrNothingToDrain if the gate is
// closed, or open for another epoch or stop. An id keeps its epoch if a stop is called off, so only the number tells that a report is
// not a late one.
func (g *Gate) Drained(epoch int64, stop int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.open {
		return fmt.Errorf("%w: no id is being withdrawn; post when the state is draining and the work has stopped", ErrNothingToDrain)
	}
	if epoch != 0 && g.epoch != 0 && epoch != g.epoch {
		return fmt.Errorf("%w of epoch %d: the id that is being withdrawn has epoch %d", ErrNothingToDrain, epoch, g.epoch)
	}
	if stop != 0 && stop != g.stop {
		return fmt.Errorf("%w by stop %d: the stop under way has the number %d", ErrNothingToDrain, stop, g.stop)
	}
	if !g.heard {
		g.heard = true
		close(g.stopped)
	}
	return nil
}

// Wait blocks until the report comes. If ctx ends before that, it returns the cause of ctx. If the gate is closed, it waits for
// the end of ctx.
func (g *Gate) Wait(ctx context.Context) error {
	g.mu.Lock()
	stopped := g.stopped
	if !g.open {
		stopped = nil // an earlier report does not count, and a nil channel blocks for ever
	}
	g.mu.Unlock()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
