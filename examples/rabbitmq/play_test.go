package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/test/envtest/example"
	"github.com/idalloc/idalloc/test/overlap"
)

// roleEnv makes this test binary play a consumer that writes down what it does, in the directory that probeEnv names. slowEnv
// is the maximum number of events that the pod processes in a second.
const (
	roleEnv      = "ORDERS_ROLE"
	roleConsumer = "consumer"
	probeEnv     = "PROBE_DIR"
	slowEnv      = "ORDERS_A_SECOND"
)

func TestMain(m *testing.M) {
	if os.Getenv(roleEnv) == "" {
		os.Exit(m.Run())
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	if err := playConsumer(log); err != nil {
		log.Error("ended", "error", err)
		os.Exit(1)
	}
}

func playConsumer(log *slog.Logger) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	r, err := example.NewRecorder(os.Getenv(probeEnv), os.Getenv("POD_NAME"), os.Getenv("POD_UID"))
	if err != nil {
		return err
	}
	handle := recording(r)
	if n, err := strconv.Atoi(os.Getenv(slowEnv)); err == nil {
		tick := time.NewTicker(time.Second / time.Duration(n))
		defer tick.Stop()
		handle = slowly(tick.C, handle)
	}
	config, err := behindWires(ctx)
	if err != nil {
		return err
	}
	c, err := newConsumer(log, handle)
	if err != nil {
		return err
	}
	defer c.Close()
	o := options(log)
	o.Config = config
	if address := os.Getenv("HTTP_ADDRESS"); address != "" { // else pods are processes of one machine, and share its ports
		if o, err = ready(ctx, o, address); err != nil {
			return err
		}
	}
	return errors.Join(idalloc.RunPartitions(ctx, o, r.Work(c.Work)), r.Close())
}

// slowly processes an event at each tick, whatever queue it is from.
func slowly(tick <-chan time.Time, handle func(context.Context, idalloc.Partition, amqp.Delivery) error) func(context.Context, idalloc.Partition, amqp.Delivery) error {
	return func(ctx context.Context, p idalloc.Partition, d amqp.Delivery) error {
		select {
		case <-tick:
		case <-ctx.Done():
			return ctx.Err()
		}
		return handle(ctx, p, d)
	}
}

// recording writes each event down.
func recording(r *example.Recorder) func(context.Context, idalloc.Partition, amqp.Delivery) error {
	return func(_ context.Context, p idalloc.Partition, d amqp.Delivery) error {
		begin := overlap.Now()
		e, err := parseEvent(d.Body)
		if err != nil {
			return err
		}
		sent, _ := d.Headers[resent].(bool)
		return r.Event(p, begin, example.Event(e), d.Redelivered || sent)
	}
}
