package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/go-logr/logr"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/idalloc/idalloc"
)

var errUsage = errors.New("usage: rabbitmq produce N | rabbitmq consume")

func main() {
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	if err := run(log, os.Args[1:]); err != nil {
		log.Error("ended", "error", err)
		os.Exit(1)
	}
}

func run(log *slog.Logger, args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	switch {
	case len(args) == 2 && args[0] == "produce":
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return errUsage
		}
		return produce(ctx, log, n)
	case len(args) == 1 && args[0] == "consume":
		c, err := newConsumer(log, func(_ context.Context, p idalloc.Partition, d amqp.Delivery) error {
			e, err := parseEvent(d.Body)
			if err != nil {
				return err
			}
			log.Info("processed", "order", e.Order, "number", e.Number, "partition", p.Number, "token", p.Token)
			return nil
		})
		if err != nil {
			return err
		}
		defer c.Close()
		o, err := ready(ctx, options(log), cmp.Or(os.Getenv("HTTP_ADDRESS"), ":8080"))
		if err != nil {
			return err
		}
		return idalloc.RunPartitions(ctx, o, c.Work)
	default:
		return errUsage
	}
}

func newConsumer(log *slog.Logger, handle func(context.Context, idalloc.Partition, amqp.Delivery) error) (*Consumer, error) {
	queues, err := queues()
	return &Consumer{Queues: queues, Handle: handle, Log: log, connection: connection{url: url()}}, err
}

func options(log *slog.Logger) idalloc.Options {
	return idalloc.Options{Log: logr.FromSlogHandler(log.Handler())}
}

// produce sends n events of ten orders.
func produce(ctx context.Context, log *slog.Logger, n int) error {
	const orders, batch = 10, 100
	queues, err := queues()
	if err != nil {
		return err
	}
	partitions, err := strconv.Atoi(os.Getenv("PARTITIONS"))
	if err != nil || partitions < 1 {
		return errors.New("PARTITIONS must say how many queues there are")
	}
	p := &Producer{Queues: queues, Partitions: partitions, Log: log, connection: connection{url: url()}}
	defer p.Close()
	events := make([]Event, 0, batch)
	for i := range n {
		events = append(events, Event{Order: fmt.Sprintf("order-%d", i%orders), Number: i/orders + 1})
		if len(events) == batch || i == n-1 {
			if err := p.Send(ctx, events); err != nil {
				return err
			}
			events = events[:0]
		}
	}
	return nil
}

func url() string { return cmp.Or(os.Getenv("RABBITMQ_URL"), "amqp://guest:guest@127.0.0.1:5672/") }

func queues() (Queues, error) {
	single, err := strconv.ParseBool(cmp.Or(os.Getenv("SINGLE_ACTIVE"), "false"))
	if err != nil {
		err = fmt.Errorf("SINGLE_ACTIVE: %w", err)
	}
	return Queues{Name: cmp.Or(os.Getenv("QUEUES"), "OrderEvents"), SingleActive: single}, err
}
