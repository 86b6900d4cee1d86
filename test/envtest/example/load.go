package example

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Orders is how many orders a Load sends events of.
const Orders = 100

// Load sends events until it is stopped: of all orders in turn, the events of each in their order.
type Load struct {
	perSecond atomic.Uint64 // the bits of a float64
	cancel    context.CancelFunc
	done      sync.WaitGroup
	sent      map[string]int
	err       error
}

// StartLoad begins to send so many events per second. send returns once the broker has all of them.
func StartLoad(ctx context.Context, perSecond float64, send func(context.Context, []Event) error) *Load {
	sending, cancel := context.WithCancel(ctx)
	l := &Load{cancel: cancel, sent: map[string]int{}}
	l.Set(perSecond)
	l.done.Go(func() { l.err = l.run(ctx, sending, send) })
	return l
}

// Set changes the load.
func (l *Load) Set(perSecond float64) { l.perSecond.Store(math.Float64bits(perSecond)) }

func (l *Load) run(ctx, sending context.Context, send func(context.Context, []Event) error) error {
	const every = 100 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	due, next, last := 0.0, 0, time.Now()
	for sending.Err() == nil {
		now := time.Now()
		due += now.Sub(last).Seconds() * math.Float64frombits(l.perSecond.Load())
		last = now
		var events []Event
		for ; due >= 1; due-- {
			order := fmt.Sprintf("order-%d", next%Orders)
			next++
			l.sent[order]++
			events = append(events, Event{Order: order, Number: l.sent[order]})
		}
		if err := send(ctx, events); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-sending.Done():
		}
	}
	return nil
}

// Stop returns how many events of each order were sent.
func (l *Load) Stop() (sent map[string]int, err error) {
	l.cancel()
	l.done.Wait()
	return l.sent, l.err
}
