package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/idalloc/idalloc"
)

// How work ends decides what becomes of the event in hand and of those that the broker sent ahead.
func testTheEndOfWork(t *testing.T, url string) {
	t.Helper()
	for _, test := range []struct {
		cause error
		// next is what the next consumer of the queue gets: five events were sent, and the work ended during the second one.
		next []int
	}{
		{cause: idalloc.ErrRevoked, next: []int{3, 4, 5}},
		{cause: idalloc.ErrClosing, next: []int{3, 4, 5}},
		{cause: idalloc.ErrLost, next: []int{2, 3, 4, 5}},
		{cause: idalloc.ErrFenced, next: []int{2, 3, 4, 5}},
	} {
		for _, single := range []bool{false, true} {
			queues := Queues{Name: fmt.Sprintf("%v, single-active %t", test.cause, single), SingleActive: single}
			t.Run(queues.Name, func(t *testing.T) {
				send(t, url, queues, 5)
				lost := len(test.next) == 4
				got := consumeUntil(t, url, queues, 2, func(inHand context.Context, end context.CancelCauseFunc) {
					end(test.cause)
					if lost {
						<-inHand.Done()
					} else if inHand.Err() != nil {
						t.Error("the context of the event in hand ended")
					}
				})
				if !slices.Equal(got, []int{1, 2}) {
					t.Errorf("the first consumer got %v, want 1 and 2", got)
				}
				next := consumeUntil(t, url, queues, len(test.next), func(_ context.Context, end context.CancelCauseFunc) {
					end(idalloc.ErrClosing)
				})
				if !slices.Equal(next, test.next) {
					t.Errorf("the next consumer got %v, want %v", next, test.next)
				}
			})
		}
	}
}

// It is processed again before the next one is.
func testAnEventThatFails(t *testing.T, url string) {
	t.Helper()
	queues := Queues{Name: "Failing"}
	send(t, url, queues, 3)
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	var got []int
	c := newTestConsumer(url, queues, func(_ context.Context, _ idalloc.Partition, d amqp.Delivery) error {
		e, err := parseEvent(d.Body)
		got = append(got, e.Number)
		if len(got) == 2 {
			return errors.New("the database is away")
		}
		if len(got) == 4 {
			end(idalloc.ErrClosing)
		}
		return err
	})
	defer c.Close()
	must(t, c.Work(ctx, idalloc.Partition{Count: 1}))
	if want := []int{1, 2, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("processed %v, want %v", got, want)
	}
}

// It is put aside with the error, and the next ones are processed. What the broker has stored is on disk.
func testAPoisonousMessage(t *testing.T, url string) {
	t.Helper()
	queues := Queues{Name: "Poisoned", SingleActive: true}
	p := &Producer{Queues: queues, Partitions: 1, Log: slog.New(slog.DiscardHandler), connection: connection{url: url}}
	defer p.Close()
	must(t, p.open())
	must(t, p.out.send(t.Context(), message{queues.Queue(0), amqp.Publishing{MessageId: "one", Body: []byte("no order")}}))
	send(t, url, queues, 1)
	if got := consumeUntil(t, url, queues, 2, func(_ context.Context, end context.CancelCauseFunc) { end(idalloc.ErrClosing) }); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("processed %v, want the poisonous message once, and 1", got)
	}
	d, ok, err := p.out.Get(queues.Dead(), true)
	must(t, err)
	said, _ := d.Headers["error"].(string)
	if !ok || string(d.Body) != "no order" || d.MessageId != "one" || d.DeliveryMode != amqp.Persistent || d.Headers["queue"] != queues.Queue(0) || !strings.Contains(said, "not an event of an order") {
		t.Errorf("the dead letter is %q with %v", d.Body, d.Headers)
	}
}

// A message to a queue that is gone is sent again, into a queue that is made again.
func testAQueueIsDeleted(t *testing.T, url string) {
	t.Helper()
	queues := Queues{Name: "Deleted"}
	p := &Producer{Queues: queues, Partitions: 1, Log: slog.New(slog.DiscardHandler), connection: connection{url: url}}
	defer p.Close()
	const events = 2*atOnce + 1 // all of those that are sent at once are returned
	for range 2 {
		all := make([]Event, 0, events)
		for i := range events {
			all = append(all, Event{Order: "order", Number: i + 1})
		}
		must(t, p.Send(t.Context(), all))
		n, err := p.out.QueueDelete(queues.Queue(0), false, false, false)
		must(t, err)
		if n != events {
			t.Errorf("the queue has %d events, want %d", n, events)
		}
	}
}

// send sends n events of one order through one queue.
func send(t *testing.T, url string, queues Queues, n int) {
	t.Helper()
	p := &Producer{Queues: queues, Partitions: 1, Log: slog.New(slog.DiscardHandler), connection: connection{url: url}}
	defer p.Close()
	events := make([]Event, 0, n)
	for i := range n {
		events = append(events, Event{Order: "order", Number: i + 1})
	}
	must(t, p.Send(t.Context(), events))
}

// consumeUntil returns the numbers of the events that one call of Work processed. last is called in the midst of event n.
func consumeUntil(t *testing.T, url string, queues Queues, n int, last func(inHand context.Context, end context.CancelCauseFunc)) []int {
	t.Helper()
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	var got []int
	c := newTestConsumer(url, queues, func(inHand context.Context, _ idalloc.Partition, d amqp.Delivery) error {
		e, err := parseEvent(d.Body)
		if got = append(got, e.Number); len(got) == n {
			last(inHand, end)
		}
		return err
	})
	defer c.Close()
	must(t, c.Work(ctx, idalloc.Partition{Count: 1}))
	return got
}

func newTestConsumer(url string, queues Queues, handle func(context.Context, idalloc.Partition, amqp.Delivery) error) *Consumer {
	return &Consumer{Queues: queues, Handle: handle, Log: slog.New(slog.DiscardHandler), connection: connection{url: url}}
}
