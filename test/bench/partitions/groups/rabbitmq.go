package main

import (
	"context"
	"errors"
	"fmt"
	"net"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/idalloc/idalloc/test/envtest/example"
)

// prefetch is how many messages the broker sends ahead.
const prefetch = 50

// queues are those of a broker, one for each partition.
type queues struct {
	*example.Server

	singleActive bool
}

func queue(p int) string { return fmt.Sprintf("orders-%d", p) }

// openQueues starts a broker whose queues get messages. The functions that it returns end both, the last one first.
func openQueues(ctx context.Context, o options, singleActive bool) (q *queues, closing []func() error, err error) {
	broker, err := example.StartServer(ctx, "rabbitmq")
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, broker.Stop())
		}
	}()
	q = &queues{Server: broker, singleActive: singleActive}
	producer, err := amqp.Dial(q.URL)
	if err != nil {
		return nil, nil, err
	}
	ch, err := producer.Channel()
	if err != nil {
		return nil, nil, err
	}
	for p := range o.partitions {
		args := amqp.Table{amqp.SingleActiveConsumerArg: singleActive}
		if _, err := ch.QueueDeclare(queue(p), true, false, false, false, args); err != nil {
			return nil, nil, err
		}
	}
	stop := feed(ctx, o, func(ctx context.Context, p int) error {
		return ch.PublishWithContext(ctx, "", queue(p), false, false, amqp.Publishing{})
	})
	return q, []func() error{broker.Stop, producer.Close, stop}, nil
}

// connect connects a member to the broker.
func (q *queues) connect(ctx context.Context, m *member) (*amqp.Connection, error) {
	return amqp.DialConfig(q.URL, amqp.Config{Dial: func(network, address string) (net.Conn, error) { return m.dial(ctx, network, address) }})
}

// deliveries returns what a queue delivers to a channel of its own.
func deliveries(conn *amqp.Connection, p int) (*amqp.Channel, <-chan amqp.Delivery, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, nil, err
	}
	if err := ch.Qos(prefetch, 0, false); err != nil {
		return nil, nil, err
	}
	all, err := ch.Consume(queue(p), "", false, false, false, false, nil)
	return ch, all, err
}

// handle works on a message. One that it cannot acknowledge comes again.
func (m *member) handle(p int, d amqp.Delivery) {
	m.worked(p)
	_ = d.Ack(false)
}

// openSingleActive has each member subscribe to all queues, and the broker choose. It chooses the first that subscribes.
func openSingleActive(ctx context.Context, o options, b *book) (system, error) {
	q, closing, err := openQueues(ctx, o, true)
	if err != nil {
		return nil, err
	}
	c := &crew{options: o, book: b, leaving: closing}
	c.enter = func(ctx context.Context, m *member) error {
		conn, err := q.connect(ctx, m)
		if err != nil {
			return err
		}
		m.end = func() {
			m.over.Store(true) // what the client has in store goes back to the queues
			_ = conn.Close()
		}
		for p := range o.partitions {
			_, all, err := deliveries(conn, p)
			if err != nil {
				return err
			}
			c.running.Go(func() {
				for d := range all {
					m.handle(p, d)
				}
			})
		}
		return nil
	}
	return c, nil
}
