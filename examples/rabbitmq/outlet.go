package main

import (
	"context"
	"errors"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// atOnce is how many messages an outlet sends before it waits for the broker.
const atOnce = 100

var errRefused = errors.New("the broker did not take a message")

// outlet is a channel to send on. What it has sent is in a queue, and on disk.
type outlet struct {
	*amqp.Channel

	returned <-chan amqp.Return
}

// message is what goes into a queue.
type message struct {
	queue string
	amqp.Publishing
}

// newOutlet has the broker confirm what it takes on a channel, and return what has no queue.
func newOutlet(ch *amqp.Channel) (*outlet, error) {
	if err := ch.Confirm(false); err != nil {
		return nil, fmt.Errorf("ask for confirmations: %w", err)
	}
	// The connection waits for whoever reads this, so there is room for all.
	return &outlet{Channel: ch, returned: ch.NotifyReturn(make(chan amqp.Return, atOnce))}, nil
}

// send sends at most atOnce messages, and returns nil once all of them are on disk. After an error do not use the outlet again.
func (o *outlet) send(ctx context.Context, messages ...message) error {
	confirmations := make([]*amqp.DeferredConfirmation, 0, len(messages))
	for _, m := range messages {
		m.DeliveryMode = amqp.Persistent
		confirmation, err := o.PublishWithDeferredConfirm("", m.queue, true, false, m.Publishing)
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
	// The broker also confirms a message that it has returned, and returns it first.
	select {
	case r := <-o.returned:
		return fmt.Errorf("%w: there is no queue %s", errRefused, r.RoutingKey)
	default:
		return nil
	}
}
