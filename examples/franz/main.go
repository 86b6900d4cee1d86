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
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/idalloc/idalloc"
)

var errUsage = errors.New("usage: franz produce N | franz consume")

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
		return produce(ctx, n)
	case len(args) == 1 && args[0] == "consume":
		c := newConsumer(log, func(_ context.Context, p idalloc.Partition, r *kgo.Record) error {
			e, err := parseEvent(r)
			if err != nil {
				return err
			}
			log.Info("processed", "order", e.Order, "number", e.Number, "partition", p.Number, "token", p.Token)
			return nil
		})
		return idalloc.RunPartitions(ctx, options(log), c.Work)
	default:
		return errUsage
	}
}

func newConsumer(log *slog.Logger, handle func(context.Context, idalloc.Partition, *kgo.Record) error) *Consumer {
	return &Consumer{Brokers: brokers(), Topic: topic(), Topics: os.Getenv("TOPICS_FILE"), Group: cmp.Or(os.Getenv("GROUP"), "workers"), Handle: handle, Log: log}
}

func options(log *slog.Logger) idalloc.Options {
	return idalloc.Options{Log: logr.FromSlogHandler(log.Handler())}
}

// produce writes n events of ten orders.
func produce(ctx context.Context, n int) error {
	const orders, batch = 10, 100
	client, err := newProducer(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	events := make([]Event, 0, batch)
	for i := range n {
		events = append(events, Event{Order: fmt.Sprintf("order-%d", i%orders), Number: i/orders + 1})
		if len(events) == batch || i == n-1 {
			if err := send(ctx, client, topic(), events); err != nil {
				return err
			}
			events = events[:0]
		}
	}
	return nil
}

// newProducer connects to the brokers, and makes the topic where there is none. The client writes each record once, and those of a
// partition in their order: that is the default of franz-go.
func newProducer(ctx context.Context) (*kgo.Client, error) {
	partitions, err := strconv.ParseInt(os.Getenv("PARTITIONS"), 10, 32)
	if err != nil || partitions < 1 {
		return nil, errors.New("PARTITIONS must say how many partitions the topic has")
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers()...))
	if err != nil {
		return nil, err
	}
	if err := create(ctx, kadm.NewClient(client), topic(), int32(partitions)); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

// send writes events into a topic, and returns once the brokers have all of them.
func send(ctx context.Context, client *kgo.Client, topic string, events []Event) error {
	records := make([]*kgo.Record, 0, len(events))
	for _, e := range events {
		r, err := e.record(topic)
		if err != nil {
			return err
		}
		records = append(records, r)
	}
	return client.ProduceSync(ctx, records...).FirstErr()
}

func brokers() []string {
	return strings.Split(cmp.Or(os.Getenv("KAFKA_BROKERS"), "127.0.0.1:9092"), ",")
}

func topic() string { return cmp.Or(os.Getenv("TOPIC"), "orders") }
