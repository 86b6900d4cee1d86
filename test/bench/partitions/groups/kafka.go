package main

import (
	"context"
	"strconv"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

const topic = "orders"

// kafka returns the protocols of a consumer group: a client that stops everything at each change, as Kafka's own client does by
// default, one that does not, and the broker that divides by itself.
func kafka() []contender {
	const classic = "session 45 s, heartbeat 3 s"
	return []contender{
		{"Kafka, range (eager)", classic, true, openKafka(kgo.Balancers(kgo.RangeBalancer()))},
		{"Kafka, cooperative-sticky", classic, true, openKafka(kgo.Balancers(kgo.CooperativeStickyBalancer()))},
		{"Kafka, KIP-848", "session 45 s, heartbeat 5 s", true, openKafka(kgo.Balancers(kgo.StickyBalancer()), kgo.ServerSideBalancer())},
	}
}

func openKafka(group ...kgo.Opt) func(context.Context, options, *book) (system, error) {
	return func(ctx context.Context, o options, b *book) (system, error) {
		broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(int32(o.partitions), topic)) //nolint:gosec // a few
		if err != nil {
			return nil, err
		}
		producer, err := kgo.NewClient(kgo.SeedBrokers(broker.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err != nil {
			broker.Close()
			return nil, err
		}
		stop := feed(ctx, o, func(ctx context.Context, p int) error {
			record := &kgo.Record{Topic: topic, Partition: int32(p), Value: []byte(strconv.Itoa(p))} //nolint:gosec // as above
			producer.Produce(ctx, record, nil)
			return nil
		})
		c := &crew{options: o, book: b, leaving: []func() error{func() error { broker.Close(); return nil }, func() error { producer.Close(); return nil }, stop}}
		c.enter = func(ctx context.Context, m *member) error {
			all := append([]kgo.Opt{
				kgo.SeedBrokers(broker.ListenAddrs()...), kgo.Dialer(m.dial), kgo.ConsumerGroup("workers"), kgo.ConsumeTopics(topic),
			}, group...)
			client, err := kgo.NewClient(all...)
			if err != nil {
				return err
			}
			c.running.Go(func() { consume(ctx, client, m) })
			m.end = func() { end(client, m) } //nolint:contextcheck // a member ends after the context of its start
			return nil
		}
		return c, nil
	}
}

func consume(ctx context.Context, client *kgo.Client, m *member) {
	for {
		fetches := client.PollFetches(ctx)
		if fetches.IsClientClosed() || ctx.Err() != nil {
			return
		}
		fetches.EachRecord(func(r *kgo.Record) { m.worked(int(r.Partition)) })
	}
}

// end leaves the group, unless the connections are cut.
func end(client *kgo.Client, m *member) {
	if m.over.Load() {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		_ = client.LeaveGroupContext(over) // so that Close does not try to
	}
	client.Close()
}
