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

func TestRecordsAreCountedByTheEndOffsets(t *testing.T) {
	_, client := connect(t)
	s := source(client)
	s.Records = true
	for round := 1; round <= 2; round++ {
		produce(t, client, 0, 5, 20)
		r, err := s.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n := float64(round)
		if want := map[int]float64{0: 0, 1: 5 * n, 2: 20 * n}; !maps.Equal(r.Values, want) || !r.Totals || r.Backlogs != nil {
			t.Errorf("%+v, want %v", r, want)
		}
	}
}

func TestWhatAGroupHasNotCommittedWaits(t *testing.T) {
	_, client := connect(t)
	s := source(client)
	s.Records, s.Group = true, group
	produce(t, client, 0, 5, 20)
	r, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := map[int]float64{0: 0, 1: 5, 2: 20}; !maps.Equal(r.Backlogs, want) {
		t.Errorf("before the first commit %v wait, want %v", r.Backlogs, want)
	}
	var offsets kadm.Offsets
	offsets.AddOffset(topic, 1, 5, -1)
	offsets.AddOffset(topic, 2, 8, -1)
	if err := s.Admin.CommitAllOffsets(t.Context(), group, offsets); err != nil {
		t.Fatal(err)
	}
	if r, err = s.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := map[int]float64{0: 0, 1: 0, 2: 12}; !maps.Equal(r.Backlogs, want) {
		t.Errorf("%v wait, want %v", r.Backlogs, want)
	}
}

// answer has the brokers answer all requests of a kind as they would, changed by this.
func answer(t *testing.T, cluster *kfake.Cluster, key kmsg.Key, response kmsg.Response) {
	t.Helper()
	cluster.ControlKey(key.Int16(), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		response.SetVersion(r.GetVersion())
		return response, nil, true
	})
}

func TestAnOffsetThatCannotBeReadIsNotTheStartOfTheLog(t *testing.T) {
	cluster, client := connect(t)
	s := source(client)
	s.Records, s.Group = true, group
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
	answer(t, cluster, kmsg.OffsetFetch, r)
	got, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Of partition 1 nothing is known at this moment.
	if want := map[int]float64{0: 1, 2: 18}; !maps.Equal(got.Backlogs, want) {
		t.Errorf("%v wait, want %v", got.Backlogs, want)
	}
	if want := map[int]float64{0: 3, 2: 20}; !maps.Equal(got.Values, want) {
		t.Errorf("%v, want %v", got.Values, want)
	}
}

func TestWhatRetentionHasDeletedDoesNotWait(t *testing.T) {
	_, client := connect(t)
	s := source(client)
	s.Records, s.Group = true, group
	produce(t, client, 20, 20, 20)
	var gone, committed kadm.Offsets
	for p := range int32(partitions) {
		gone.AddOffset(topic, p, 12, -1)
	}
	if _, err := s.Admin.DeleteRecords(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	committed.AddOffset(topic, 1, 5, -1)
	committed.AddOffset(topic, 2, 15, -1)
	if err := s.Admin.CommitAllOffsets(t.Context(), group, committed); err != nil {
		t.Fatal(err)
	}
	r, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := map[int]float64{0: 8, 1: 8, 2: 5}; !maps.Equal(r.Backlogs, want) {
		t.Errorf("%v wait, want %v", r.Backlogs, want)
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
	r, err := s.Read(t.Context())
	if err != nil || len(r.Values) != partitions {
		t.Fatalf("%v, %v", r.Values, err)
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

func TestBytesAreCountedByTheLeadersLog(t *testing.T) {
	_, client := connect(t)
	s := source(client)
	produce(t, client, 1, 5, 20)
	before, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	produce(t, client, 0, 0, 10)
	after, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
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
			r, err := s.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if origin = r.Origins[0]; time.Now().After(until) {
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
