package hook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrNothingToDrain means that no stop waits for this report.
var ErrNothingToDrain = errors.New("nothing to drain")

// Gate receives the program's report that it has stopped using the id. It is open while the pod gives an id away. A report counts only until the gate is
// closed. The zero value is closed. It is safe for concurrent use.
type Gate struct {
	mu    sync.Mutex
	open  bool
	token int64 // of the id that the pod gives away, 0 if unknown
	// first and last are the numbers of the first and the last stop since the gate was opened, 0 if there was none.
	first, last int
	// stopped is created by Open and closed by the report.
	stopped chan struct{}
	heard   bool
}

// Open opens the gate. token is the token of the id that the pod gives away, or 0 if unknown. stop is the number of the stop, or 0 if it has none yet. If the
// gate is already open, the program is asked again, and a report for an earlier number also counts, because the work has not begun again in between.
func (g *Gate) Open(token int64, stop int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open {
		g.first, g.last = cmp.Or(g.first, stop), stop
		return
	}
	g.open, g.token, g.first, g.last, g.heard = true, token, stop, stop, false
	g.stopped = make(chan struct{})
}

// Close closes the gate and forgets the report. Call it when the id is in use again, or given away.
func (g *Gate) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = false
}

// Drained reports that the program has stopped using the id with this token, in answer to the stop with this number. 0 stands for any token or any stop. A
// second report is no error. Drained does not block. The error wraps ErrNothingToDrain if the gate is closed, or open for another token or stop. A cancelled
// stop leaves the token unchanged, so only the number identifies a late report.
func (g *Gate) Drained(token int64, stop int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.open {
		return fmt.Errorf("%w: no id is being withdrawn; post when the state is draining and the work has stopped", ErrNothingToDrain)
	}
	if token != 0 && g.token != 0 && token != g.token {
		return fmt.Errorf("%w of token %d: the id that is being withdrawn has token %d", ErrNothingToDrain, token, g.token)
	}
	if stop != 0 && (stop < g.first || stop > g.last) {
		return fmt.Errorf("%w by stop %d: the stop under way has the number %d", ErrNothingToDrain, stop, g.last)
	}
	if !g.heard {
		g.heard = true
		close(g.stopped)
	}
	return nil
}

// Wait blocks until the report comes. If ctx ends earlier, it returns the cause of ctx. If the gate is closed, it waits for the end of ctx.
func (g *Gate) Wait(ctx context.Context) error {
	g.mu.Lock()
	stopped := g.stopped
	if !g.open {
		stopped = nil // an earlier report does not count, and a nil channel blocks forever
	}
	g.mu.Unlock()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
