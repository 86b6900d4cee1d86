package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/idalloc/idalloc"
)

const (
	// prefetch is how many messages the broker sends ahead. Those that are not processed when work stops go back to the queue.
	prefetch = 50
	// retryDelay is how long a consumer waits before it turns to a broker again that has failed.
	retryDelay = 250 * time.Millisecond
)

var errClosed = errors.New("the broker closed the channel")

// ErrPoison means that an event can never be processed.
var ErrPoison = errors.New("the event can never be processed")

// Consumer processes the events of the queues that this pod owns.
type Consumer struct {
	Queues Queues
	// Handle processes an event. The broker delivers an event again if it was not acknowledged, so Handle must do no harm when it
	// processes one twice. After ErrPoison the event goes to Queues.Dead with the error; after any other error it is delivered again.
	// Its context ends only when this pod must not go on, not even with the event in hand.
	Handle func(context.Context, idalloc.Partition, amqp.Delivery) error
	Log    *slog.Logger

	connection connection
}

// Work consumes the queue of one partition until ctx ends. It is a function for idalloc.RunPartitions: while it runs, no other pod consumes
// the queue. When it returns, every event is acknowledged or back in the queue.
func (c *Consumer) Work(ctx context.Context, p idalloc.Partition) error {
	for ctx.Err() == nil {
		err := c.consume(ctx, p)
		if err == nil {
			break
		}
		c.Log.Warn("will consume again", "queue", c.Queues.Queue(p.Number), "error", err)
		pause(ctx, retryDelay)
	}
	return nil
}

// consume returns nil when ctx has ended. An error means that the broker failed, or that an event could not be processed.
func (c *Consumer) consume(ctx context.Context, p idalloc.Partition) (err error) {
	ch, err := c.connection.channel()
	if err != nil {
		return err
	}
	// The broker answers after it has put back what is not acknowledged, in the place that it had.
	defer func() { _ = ch.Close() }()
	if err := c.Queues.declare(ch, p.Number); err != nil {
		return err
	}
	out, err := newOutlet(ch)
	if err != nil {
		return err
	}
	if err := ch.Qos(prefetch, 0, false); err != nil {
		return err
	}
	deliveries, err := ch.Consume(c.Queues.Queue(p.Number), "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	inHand, done := finishing(ctx)
	defer done()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case d, ok := <-deliveries:
			if !ok {
				return errClosed
			}
			if ctx.Err() != nil {
				break // select chooses at random, and this one was not begun
			}
			if err := c.process(ctx, inHand, out, p, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// process processes one event, and acknowledges it unless the partition was lost meanwhile.
func (c *Consumer) process(ctx, inHand context.Context, out *outlet, p idalloc.Partition, d amqp.Delivery) error {
	err := c.Handle(inHand, p, d)
	if errors.Is(err, ErrPoison) {
		c.Log.Warn("put aside", "queue", c.Queues.Queue(p.Number), "to", c.Queues.Dead(), "error", err)
		err = out.send(inHand, message{c.Queues.Dead(), amqp.Publishing{
			MessageId: d.MessageId,
			Headers:   amqp.Table{"queue": c.Queues.Queue(p.Number), "token": p.Token, "error": err.Error()},
			Body:      d.Body,
		}})
	}
	if err != nil {
		return fmt.Errorf("process message %s of %s: %w", d.MessageId, c.Queues.Queue(p.Number), err)
	}
	if gone(ctx) {
		return nil
	}
	return d.Ack(false)
}

// gone reports whether another pod may own the partition by now.
func gone(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return ctx.Err() != nil && (errors.Is(cause, idalloc.ErrLost) || errors.Is(cause, idalloc.ErrFenced))
}

// finishing returns the context of the event in hand. If the partition is revoked, or the program ends, idalloc waits until the work
// has stopped, so the event is finished and acknowledged. If the partition is lost or fenced, another pod may own it now
// or soon. Then this context ends, too, and nothing is acknowledged: an event that is not acknowledged is processed again, and one
// that was acknowledged by mistake is gone.
func finishing(ctx context.Context) (context.Context, context.CancelFunc) {
	inHand, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if gone(ctx) {
			cancel(context.Cause(ctx))
		}
	})
	return inHand, func() {
		stop()
		cancel(nil)
	}
}

// Close closes the connection. Call it after idalloc.RunPartitions.
func (c *Consumer) Close() { c.connection.close() }

// pause returns after d, or when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
