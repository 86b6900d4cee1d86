// The broker is kfake, which runs in this process: a real one is not among what the tests can install. Nothing here depends on what only kfake
// has.
package kafka_test

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/idalloc/idalloc/autoscaler/internal/monitor"
	"github.com/idalloc/idalloc/autoscaler/internal/source/kafka"
)

const (
	topic      = "orders"
	partitions = 3
	group      = "workers"
)

// connect starts a broker and returns a client of it.
func connect(t *testing.T) (*kfake.Cluster, *kgo.Client) {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.SeedTopics(partitions, topic))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.MetadataMinAge(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return cluster, client
}

// produce writes so many records of a hundred bytes to each partition.
func produce(t *testing.T, client *kgo.Client, counts ...int) {
	t.Helper()
	var records []*kgo.Record
	for p, n := range counts {
		for range n {
			records = append(records, &kgo.Record{Topic: topic, Partition: int32(p), Value: make([]byte, 100)})
		}
	}
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func source(client *kgo.Client) kafka.Source {
	return kafka.Source{Admin: kadm.NewClient(client), Topic: topic, Now: time.Now}
}

// counting returns a source that counts records, and what the group has not committed.
func counting(client *kgo.Client) kafka.Source {
	s := source(client)
	s.Records, s.Group = true, group
	return s
}

func read(t *testing.T, s kafka.Source) monitor.Reading {
	t.Helper()
	r, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// commit commits the group's offsets of partitions.
func commit(t *testing.T, s kafka.Source, at map[int32]int64) {
	t.Helper()
	var offsets kadm.Offsets
	for p, offset := range at {
		offsets.AddOffset(topic, p, offset, -1)
	}
	if err := s.Admin.CommitAllOffsets(t.Context(), group, offsets); err != nil {
		t.Fatal(err)
	}
}

func TestRecordsAreCountedByTheEndOffsets(t *testing.T) {
	_, client := connect(t)
	s := source(client)
	s.Records = true
	for round := 1; round <= 2; round++ {
		produce(t, client, 0, 5, 20)
		r := read(t, s)
		n := float64(round)
		if want := map[int]float64{0: 0, 1: 5 * n, 2: 20 * n}; !maps.Equal(r.Values, want) || !r.Totals || r.Backlogs != nil {
			t.Errorf("%+v, want %v", r, want)
		}
	}
}

func TestWhatAGroupHasNotCommittedWaits(t *testing.T) {
	_, client := connect(t)
	s := counting(client)
	if got, want := read(t, s).Backlogs, map[int]float64{0: 0, 1: 0, 2: 0}; !maps.Equal(got, want) {
		t.Errorf("%v wait in a new topic, want %v", got, want)
	}
	produce(t, client, 4, 5, 20)
	commit(t, s, map[int32]int64{1: 5, 2: 8})
	// Partition 0 is one of which the group has committed nothing yet.
	if got, want := read(t, s).Backlogs, map[int]float64{0: 4, 1: 0, 2: 12}; !maps.Equal(got, want) {
		t.Errorf("%v wait, want %v", got, want)
	}
}

// A name that was mistyped would count the whole log as a backlog.
func TestAGroupThatDoesNotExistHasNoBacklog(t *testing.T) {
	_, client := connect(t)
	s := counting(client)
	produce(t, client, 0, 5, 20)
	if r, err := s.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "group workers does not exist, or has committed nothing yet") {
		t.Errorf("%v: %v wait", err, r.Backlogs)
	}
}

func TestAnOffsetThatCannotBeReadIsNotTheStartOfTheLog(t *testing.T) {
	cluster, client := connect(t)
	s := counting(client)
	produce(t, client, 3, 5, 20)
	offsets := make([]kmsg.OffsetFetchResponseGroupTopicPartition, partitions)
	for p := range int32(partitions) {
		offsets[p] = kmsg.NewOffsetFetchResponseGroupTopicPartition()
		offsets[p].Partition, offsets[p].Offset = p, 2
	}
	offsets[1].ErrorCode = kerr.UnstableOffsetCommit.Code
	topics, err := s.Admin.ListTopics(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	r := kmsg.NewPtrOffsetFetchResponse()
	r.Groups = []kmsg.OffsetFetchResponseGroup{{Group: group, Topics: []kmsg.OffsetFetchResponseGroupTopic{{Topic: topic, TopicID: topics[topic].ID, Partitions: offsets}}}}
	cluster.ControlKey(kmsg.OffsetFetch.Int16(), func(request kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		r.SetVersion(request.GetVersion())
		return r, nil, true
	})
	got := read(t, s)
	// Of partition 1 nothing is known at this moment.
	if want := map[int]float64{0: 1, 2: 18}; !maps.Equal(got.Backlogs, want) {
		t.Errorf("%v wait, want %v", got.Backlogs, want)
	}
	if want := map[int]float64{0: 3, 2: 20}; !maps.Equal(got.Values, want) {
		t.Errorf("%v, want %v", got.Values, want)
	}
	if why := got.Why[1]; why != "nothing says what group workers has not committed of partition 1 of topic orders" {
		t.Errorf("why %v", got.Why)
	}
}

func TestWhatRetentionHasDeletedDoesNotWait(t *testing.T) {
	_, client := connect(t)
	s := counting(client)
	produce(t, client, 20, 20, 20)
	var gone kadm.Offsets
	for p := range int32(partitions) {
		gone.AddOffset(topic, p, 12, -1)
	}
	if _, err := s.Admin.DeleteRecords(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	commit(t, s, map[int32]int64{1: 5, 2: 15})
	if got, want := read(t, s).Backlogs, map[int]float64{0: 8, 1: 8, 2: 5}; !maps.Equal(got, want) {
		t.Errorf("%v wait, want %v", got, want)
	}
}

// A broker has a log of each partition that it leads or follows, and while it moves one to another disk, two.
func TestOnlyTheLogThatTheLeaderServesCounts(t *testing.T) {
	cluster, client := connect(t)
	s := source(client)
	produce(t, client, 1, 1, 1)
	cluster.ControlKey(kmsg.DescribeLogDirs.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		sizes := kmsg.NewPtrDescribeLogDirsResponse()
		sizes.SetVersion(r.GetVersion())
		for i, future := range []bool{true, false, true} {
			dir := kmsg.DescribeLogDirsResponseDir{Dir: strconv.Itoa(i)}
			dir.Topics = []kmsg.DescribeLogDirsResponseDirTopic{{Topic: topic}}
			for p := range int32(partitions) {
				one := kmsg.DescribeLogDirsResponseDirTopicPartition{Partition: p, Size: 100 + int64(cluster.CurrentNode()), IsFuture: future}
				if future {
					one.Size = 7
				}
				dir.Topics[0].Partitions = append(dir.Topics[0].Partitions, one)
			}
			sizes.Dirs = append(sizes.Dirs, dir)
		}
		return sizes, nil, true
	})
	r := read(t, s)
	if len(r.Values) != partitions {
		t.Fatalf("%v", r.Values)
	}
	for p, origin := range r.Origins {
		if want := fmt.Sprintf("broker %g", r.Values[p]-100); origin != want || r.Values[p] < 100 {
			t.Errorf("partition %d has %g of %s", p, r.Values[p], origin)
		}
		if leader := cluster.LeaderFor(topic, int32(p)); origin != fmt.Sprintf("broker %d", leader) { //nolint:gosec // it was one
			t.Errorf("partition %d is of %s, and broker %d leads it", p, origin, leader)
		}
	}
}

// So older brokers answer a user without the right to see logs.
func TestABrokerThatShowsNoLogHasNoEmptyOne(t *testing.T) {
	cluster, client := connect(t)
	cluster.ControlKey(kmsg.DescribeLogDirs.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		none := kmsg.NewPtrDescribeLogDirsResponse()
		none.SetVersion(r.GetVersion())
		return none, nil, true
	})
	r := read(t, source(client))
	if len(r.Values) > 0 || len(r.Why) != partitions || !strings.Contains(r.Why[2], "the broker that leads partition 2 of topic orders shows no log of it") {
		t.Errorf("%v, because of %q", r.Values, r.Why[2])
	}
}

func TestBytesAreCountedByTheLeadersLog(t *testing.T) {
	_, client := connect(t)
	s := source(client)
	produce(t, client, 1, 5, 20)
	before := read(t, s)
	produce(t, client, 0, 0, 10)
	after := read(t, s)
	if len(after.Values) != partitions || after.Values[0] != before.Values[0] || after.Values[1] != before.Values[1] {
		t.Errorf("%v, and before %v", after.Values, before.Values)
	}
	if grown := after.Values[2] - before.Values[2]; grown < 1000 || grown > 2000 {
		t.Errorf("ten records of a hundred bytes took %g bytes", grown)
	}
	for p, origin := range after.Origins {
		if origin != before.Origins[p] || !strings.HasPrefix(origin, "broker ") {
			t.Errorf("partition %d is of %q, and was of %q", p, origin, before.Origins[p])
		}
	}
}

func TestAnotherLeaderIsAnotherOrigin(t *testing.T) {
	cluster, client := connect(t)
	s := source(client)
	produce(t, client, 1, 1, 1)
	for node := range int32(2) {
		if err := cluster.MoveTopicPartition(topic, 0, node); err != nil {
			t.Fatal(err)
		}
		// The client learns of the new leader when what it knows is older than its MetadataMinAge.
		for origin, until := "", time.Now().Add(time.Minute); origin != fmt.Sprintf("broker %d", node); {
			if origin = read(t, s).Origins[0]; time.Now().After(until) {
				t.Fatalf("partition 0 is of %q, a minute after it moved to broker %d", origin, node)
			}
		}
	}
}

func TestATopicThatDoesNotExistIsNamed(t *testing.T) {
	_, client := connect(t)
	for _, records := range []bool{true, false} {
		s := source(client)
		s.Topic, s.Records = "none", records
		if r, err := s.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "topic none: UNKNOWN_TOPIC_OR_PARTITION") {
			t.Errorf("records %t: %v, %v", records, r, err)
		}
	}
}
