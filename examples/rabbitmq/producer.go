package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Producer sends events. One goroutine may use it at a time: what sends the events of an order in their order.
type Producer struct {
	Queues Queues
	// Partitions is how many queues there are.
	Partitions int
	Log        *slog.Logger

	connection connection
	out        *outlet
}

// resent is the header of a message that may be in the queue twice.
const resent = "resent"

// Send sends events and returns once the broker has all of them on disk. What fails it sends again, so that the events of an order are
// in the queue in their order, some of them twice. It gives up only when ctx ends.
func (p *Producer) Send(ctx context.Context, events []Event) error {
	for some := range slices.Chunk(events, atOnce) {
		if err := p.sendSome(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

func (p *Producer) sendSome(ctx context.Context, events []Event) error {
	for attempt := 0; ; attempt++ {
		err := p.send(ctx, events, attempt > 0)
		if err == nil {
			return nil
		}
		if p.out != nil {
			_ = p.out.Close() // it may be lost, and that is as good
			p.out = nil
		}
		p.Log.Warn("will send again", "error", err)
		pause(ctx, retryDelay)
		if ctx.Err() != nil {
			return err
		}
	}
}

func (p *Producer) send(ctx context.Context, events []Event, again bool) error {
	if err := p.open(); err != nil {
		return err
	}
	messages := make([]message, 0, len(events))
	for _, e := range events {
		body, err := e.body()
		if err != nil {
			return err
		}
		messages = append(messages, message{p.Queues.Queue(Partition(e.Order, p.Partitions)), amqp.Publishing{
			MessageId: e.Order + "/" + strconv.Itoa(e.Number),
			Headers:   amqp.Table{resent: again},
			Body:      body,
		}})
	}
	return p.out.send(ctx, messages...)
}

// open makes the queues, and opens a channel to send on.
func (p *Producer) open() error {
	if p.out != nil && !p.out.IsClosed() {
		return nil
	}
	ch, err := p.connection.channel()
	if err != nil {
		return err
	}
	for partition := range p.Partitions {
		if err := p.Queues.declare(ch, partition); err != nil {
			return errors.Join(err, ch.Close())
		}
	}
	if p.out, err = newOutlet(ch); err != nil {
		return errors.Join(err, ch.Close())
	}
	return nil
}

// Close closes the connection.
func (p *Producer) Close() { p.connection.close() }
