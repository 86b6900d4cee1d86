package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/idalloc/idalloc"
)

const (
	// batch is after how many records an offset is committed, at most. After a crash as many are processed again.
	batch = 100
	// patience is how long a request to the brokers may take.
	patience = 10 * time.Second
	// retryDelay is how long a consumer waits before it turns to brokers again that have failed.
	retryDelay = 250 * time.Millisecond
)

// ErrPoison means that a record can never be processed.
var ErrPoison = errors.New("the record can never be processed")

// Consumer processes the records of the partitions that this pod owns.
type Consumer struct {
	Brokers []string
	Topic   string
	// Topics is a file with a list of topics, in place of one Topic. Empty: none.
	Topics string
	// Group is the name under which offsets are committed. No other consumer may join a group of this name: Kafka would refuse the commits.
	Group string
	// Handle processes a record. A record whose offset was not committed is delivered again, so Handle must do no harm when it processes
	// one twice. After ErrPoison the record goes to the topic of this name and -dead, with the error; after any other error it is delivered
	// again. Its context ends only when this pod must not go on, not even with the record in hand.
	Handle func(context.Context, idalloc.Partition, *kgo.Record) error
	Log    *slog.Logger
}

// Work consumes one partition from the committed offset until ctx ends. It is a function for idalloc.RunPartitions: while it runs, no
// other pod consumes the partition. When it returns, the offset of every record that it processed is committed, unless the partition
// was lost or the brokers failed. If the list of topics changes, it reads what the list has for the number then.
func (c *Consumer) Work(ctx context.Context, p idalloc.Partition) error {
	for ctx.Err() == nil {
		at, ok, err := c.where(p.Number)
		switch {
		case err != nil:
			c.Log.Warn("will look again", "number", p.Number, "error", err)
		case ok:
			here, leave := c.while(ctx, p.Number, at)
			err = c.consume(here, p, at)
			leave()
			if err != nil {
				c.Log.Warn("will consume again from the committed offset", "topic", at.topic, "partition", at.partition, "error", err)
				pause(ctx, retryDelay)
			}
			continue
		}
		pause(ctx, look)
	}
	return nil
}

// consume returns nil when ctx has ended and the offset is committed. An error means that a broker failed, or that a record could not
// be processed.
func (c *Consumer) consume(ctx context.Context, p idalloc.Partition, at place) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Brokers...), kgo.RetryTimeout(patience))
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	if err := c.create(ctx, admin, p, at); err != nil {
		return err
	}
	from, err := c.committed(ctx, admin, at)
	if err != nil {
		return err
	}
	client.AddConsumePartitions(map[string]map[int32]kgo.Offset{at.topic: {at.partition: from}})
	inHand, done := finishing(ctx)
	defer done()
	for ctx.Err() == nil {
		records, err := poll(ctx, client)
		if err != nil {
			return err
		}
		processed, failed := c.process(ctx, inHand, client, p, records)
		if err := errors.Join(failed, c.commit(ctx, inHand, admin, records[:processed])); err != nil {
			return err
		}
	}
	return nil
}

// create makes the topic, unless it is of a list, and the one for what can never be processed.
func (c *Consumer) create(ctx context.Context, admin *kadm.Client, p idalloc.Partition, at place) error {
	if c.Topics == "" {
		if err := create(ctx, admin, at.topic, int32(p.Count)); err != nil { //nolint:gosec // the contract has at most 4096 partitions
			return err
		}
	}
	return create(ctx, admin, dead(at.topic), 1)
}

// committed returns the offset from which to consume the partition.
func (c *Consumer) committed(ctx context.Context, admin *kadm.Client, from place) (kgo.Offset, error) {
	start := kgo.NewOffset().AtStart()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	offsets, err := admin.FetchOffsetsForTopics(ctx, c.Group, from.topic)
	if errors.Is(err, kerr.GroupIDNotFound) {
		return start, nil // nothing was committed in this group
	}
	if err != nil {
		return start, fmt.Errorf("ask for the committed offset: %w", err)
	}
	if at, ok := offsets.Lookup(from.topic, from.partition); ok && at.At >= 0 {
		return start.At(at.At), nil
	}
	return start, nil
}

// poll returns the next records. It returns none when ctx ends.
func poll(ctx context.Context, client *kgo.Client) ([]*kgo.Record, error) {
	fetches := client.PollRecords(ctx, batch)
	if ctx.Err() != nil {
		return nil, nil //nolint:nilerr // the end of ctx is no failure of a broker
	}
	return fetches.Records(), fetches.Err()
}

// process processes records until one fails or ctx ends, and returns how many it has processed.
func (c *Consumer) process(ctx, inHand context.Context, client *kgo.Client, p idalloc.Partition, records []*kgo.Record) (processed int, err error) {
	for processed < len(records) && ctx.Err() == nil {
		r := records[processed]
		err := c.Handle(inHand, p, r)
		if errors.Is(err, ErrPoison) {
			c.Log.Warn("put aside", "topic", r.Topic, "partition", r.Partition, "offset", r.Offset, "to", dead(r.Topic), "error", err)
			err = putAside(inHand, client, r, err)
		}
		if err != nil {
			return processed, fmt.Errorf("process offset %d of %s, partition %d: %w", r.Offset, r.Topic, r.Partition, err)
		}
		processed++
	}
	return processed, nil
}

// putAside writes a record that can never be processed into another topic, with the reason, and returns once the brokers have it.
func putAside(ctx context.Context, client *kgo.Client, r *kgo.Record, reason error) error {
	header := func(key, value string) kgo.RecordHeader { return kgo.RecordHeader{Key: key, Value: []byte(value)} }
	return client.ProduceSync(ctx, &kgo.Record{Topic: dead(r.Topic), Key: r.Key, Value: r.Value, Headers: append(slices.Clone(r.Headers),
		header("error", reason.Error()), header("partition", strconv.Itoa(int(r.Partition))), header("offset", strconv.FormatInt(r.Offset, 10)))}).FirstErr()
}

// commit commits that these records were processed, unless the partition was lost meanwhile.
func (c *Consumer) commit(ctx, inHand context.Context, admin *kadm.Client, records []*kgo.Record) error {
	if len(records) == 0 || gone(ctx) {
		return nil
	}
	last := records[len(records)-1]
	offsets := kadm.Offsets{}
	offsets.AddOffset(last.Topic, last.Partition, last.Offset+1, last.LeaderEpoch)
	inHand, cancel := context.WithTimeout(inHand, patience)
	defer cancel()
	if err := admin.CommitAllOffsets(inHand, c.Group, offsets); err != nil {
		return fmt.Errorf("commit offset %d of %s, partition %d: %w", last.Offset+1, c.Topic, last.Partition, err)
	}
	return nil
}

// gone reports whether another pod may own the partition by now.
func gone(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return ctx.Err() != nil && (errors.Is(cause, idalloc.ErrLost) || errors.Is(cause, idalloc.ErrFenced))
}

// finishing returns the context of the record in hand and of the last commit. If the partition is revoked, or the program ends, idalloc
// waits until the work has stopped, so the record is finished and its offset committed. If the partition is lost or fenced, another pod may
// own it now or soon. Then this context ends, too, and nothing is committed.
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

// pause returns after d, or when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
