package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
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
