package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/idalloc/idalloc"
)

const (
	// commitTimeout is how long a commit may take.
	commitTimeout = 5 * time.Second
	// batch is how many records are processed before they are committed. They are finished before the id goes to another pod.
	batch = 100
)

// Consumer processes the records of a topic as one member of a group.
type Consumer struct {
	Brokers        []string
	Topic, Group   string
	SessionTimeout time.Duration
	// Handle processes a record. A record whose offset was not committed is delivered again.
	Handle func(*kgo.Record) error
	Log    *slog.Logger
}

// Work consumes until ctx ends. It is a function for idalloc.Run: while it runs, no other pod is this member of the group. When it
// returns, what was processed is committed and the client is closed, so the broker knows of no consumer that the next one could collide
// with.
func (c *Consumer) Work(ctx context.Context, id idalloc.Identity) error {
	member := fmt.Sprintf("%s-%04d", id.Owner.Name, id.ID)
	client, err := kgo.NewClient(
		kgo.SeedBrokers(c.Brokers...),
		kgo.ConsumerGroup(c.Group),
		kgo.ConsumeTopics(c.Topic),
		// With an instance id, Close does not leave the group. The broker keeps the member's partitions for the session timeout.
		kgo.InstanceID(member),
		kgo.SessionTimeout(c.SessionTimeout),
		// The range balancer divides partitions by the order of the instance ids, so they follow from the ids.
		kgo.Balancers(kgo.RangeBalancer()),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(func(_ context.Context, client *kgo.Client, assigned map[string][]int32) {
			_, generation := client.GroupMetadata()
			c.Log.Info("assigned", "member", member, "generation", generation, "partitions", assigned[c.Topic])
		}),
	)
	if err != nil {
		return err
	}
	defer client.CloseAllowingRebalance()
	for ctx.Err() == nil {
		if err := c.process(ctx, client); err != nil {
			return err
		}
		client.AllowRebalance()
	}
	return nil
}

// process processes some records and commits them.
func (c *Consumer) process(ctx context.Context, client *kgo.Client) error {
	fetches := client.PollRecords(ctx, batch)
	var failed error
	fetches.EachError(func(topic string, partition int32, err error) {
		if !errors.Is(err, context.Canceled) {
			failed = errors.Join(failed, fmt.Errorf("partition %d of %s: %w", partition, topic, err))
		}
	})
	if failed != nil {
		return failed
	}
	records := fetches.Records()
	for _, record := range records {
		if err := c.Handle(record); err != nil {
			return fmt.Errorf("record %d of partition %d: %w", record.Offset, record.Partition, err)
		}
	}
	if len(records) == 0 {
		return nil
	}
	// Not with ctx: what was processed is committed even when the id is to go to another pod.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	return client.CommitRecords(ctx, records...)
}
