package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	ch         *amqp.Channel
}

// resent is the header of a message that may be in the queue twice.
const resent = "resent"

var errRefused = errors.New("the broker did not take a message")

// Send sends events and returns once the broker has all of them on disk. After a failure it sends all of them again, so that the
// events of an order are in the queue in their order, some of them twice. It gives up only when ctx ends.
func (p *Producer) Send(ctx context.Context, events []Event) error {
	for attempt := 0; ; attempt++ {
		err := p.send(ctx, events, attempt > 0)
		if err == nil {
			return nil
		}
		p.ch = nil
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
	confirmations := make([]*amqp.DeferredConfirmation, 0, len(events))
	for _, e := range events {
		body, err := e.body()
		if err != nil {
			return err
		}
		confirmation, err := p.ch.PublishWithDeferredConfirm("", p.Queues.Queue(Partition(e.Order, p.Partitions)), true, false, amqp.Publishing{
			DeliveryMode: amqp.Persistent,
			MessageId:    e.Order + "/" + strconv.Itoa(e.Number),
			Headers:      amqp.Table{resent: again},
			Body:         body,
		})
		if err != nil {
			return err
		}
		confirmations = append(confirmations, confirmation)
	}
	for _, confirmation := range confirmations {
		taken, err := confirmation.WaitContext(ctx)
		if err != nil {
			return err
		}
		if !taken {
			return errRefused
		}
	}
	return nil
}

// open opens a channel on which the broker confirms what it has taken.
func (p *Producer) open() error {
	if p.ch != nil && !p.ch.IsClosed() {
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
	if err := ch.Confirm(false); err != nil {
		return errors.Join(fmt.Errorf("ask for confirmations: %w", err), ch.Close())
	}
	p.ch = ch
	return nil
}

// Close closes the connection.
func (p *Producer) Close() { p.connection.close() }
