package consumers

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/idalloc/idalloc/test/envtest/suite"
)

const (
	topic      = "orders"
	group      = "workers"
	partitions = 12
	members    = 4
)

func testKafka(ctx context.Context, t *testing.T, env *suite.Suite) {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, topic))
	must(t, err)
	t.Cleanup(cluster.Close)
	compareAsKafka(t, cluster)
	w := deploy(ctx, t, env, "consumers", members, program(build(ctx, t, "kafka-static-membership"), map[string]string{
		"KAFKA_BROKERS": strings.Join(cluster.ListenAddrs(), ","), "SESSION_TIMEOUT": "5m",
	}))
	g := kafkaGroup{workload: w, cluster: cluster}
	g.consume(ctx, 10)
	before := g.state(ctx)
	t.Logf("generation %d: %v", before.generation, before.partitions)
	pods := w.pods(ctx)
	g.assigned(ctx, before)

	w.restart(ctx, members)
	g.consume(ctx, 20)
	after := g.state(ctx)
	if after.generation != before.generation {
		t.Errorf("the group is in generation %d, and was in %d before the rolling restart: it was rebalanced", after.generation, before.generation)
	}
	for name, partitions := range before.partitions {
		if !slices.Equal(after.partitions[name], partitions) {
			t.Errorf("%s has the partitions %v, and had %v", name, after.partitions[name], partitions)
		}
		if after.clients[name] == before.clients[name] {
			t.Errorf("%s is the client that it was", name)
		}
	}
	g.assigned(ctx, before)
	for id, pod := range pods {
		if now := w.pods(ctx)[id]; now == pod {
			t.Errorf("id %d is still with %s", id, pod)
		}
	}
}

// compareAsKafka has kfake treat a static member that comes back as Kafka does. Kafka keeps the assignment if the group would choose the
// same balancer again. kfake asks for more: the member's metadata must be the same, byte for byte. They have the generation that the client
// saw last, and a new process has seen none. So the generation is taken out of them; the range balancer does not use it.
func compareAsKafka(t *testing.T, cluster *kfake.Cluster) {
	t.Helper()
	cluster.ControlKey(kmsg.JoinGroup.Int16(), func(request kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		join, ok := request.(*kmsg.JoinGroupRequest)
		if !ok {
			return nil, nil, false //nolint:nilnil // kfake goes on with the request
		}
		for i := range join.Protocols {
			var metadata kmsg.ConsumerMemberMetadata
			if err := metadata.ReadFrom(join.Protocols[i].Metadata); err != nil {
				t.Errorf("the metadata of a member: %v", err)
				continue
			}
			metadata.Generation = -1
			join.Protocols[i].Metadata = metadata.AppendTo(nil)
		}
		return nil, nil, false //nolint:nilnil // kfake goes on with the request
	})
}

// kafkaGroup is the workload with its group at the broker.
type kafkaGroup struct {
	*workload

	cluster *kfake.Cluster
}

// groupState is what the broker knows of a group whose members are all there. The maps' keys are the names of the members.
type groupState struct {
	generation int32
	partitions map[string][]int32
	clients    map[string]string
}

// state waits until the group is stable and returns its state.
func (g kafkaGroup) state(ctx context.Context) groupState {
	g.t.Helper()
	info, err := g.cluster.WaitGroupStable(ctx, group, members)
	must(g.t, err)
	s := groupState{generation: info.Epoch, partitions: map[string][]int32{}, clients: map[string]string{}}
	for _, m := range info.Members {
		if m.InstanceID == nil {
			g.t.Fatalf("%s is no static member", m.MemberID)
		}
		s.partitions[*m.InstanceID] = slices.Sorted(slices.Values(m.Assignment[topic]))
		s.clients[*m.InstanceID] = m.MemberID
	}
	return s
}

// consume writes records into each partition, and waits until all that was written is processed and committed.
func (g kafkaGroup) consume(ctx context.Context, upTo int64) {
	g.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(g.cluster.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	must(g.t, err)
	defer client.Close()
	records := make([]*kgo.Record, 0, 10*partitions)
	for p := range int32(partitions) {
		for range 10 {
			records = append(records, &kgo.Record{Topic: topic, Partition: p, Value: []byte("order")})
		}
	}
	must(g.t, client.ProduceSync(ctx, records...).FirstErr())
	_, err = g.cluster.WaitGroupInfo(ctx, group, func(info *kfake.GroupInfo) bool {
		if info == nil { // nobody has joined yet
			return false
		}
		done := 0
		for _, commit := range info.Commits[topic] {
			if commit.Offset == upTo {
				done++
			}
		}
		return done == partitions
	})
	must(g.t, err)
}

// assigned waits until each pod's consumer has heard of its assignment, and compares with what the broker says: the last one, and for
// pods that have heard of one only, the only one.
func (g kafkaGroup) assigned(ctx context.Context, want groupState) {
	g.t.Helper()
	var got map[string][]int32
	g.until(ctx, "each consumer has heard of the generation", func(ctx context.Context) (heard bool, err error) {
		got, err = g.heard(ctx, want.generation)
		return len(got) == members, err
	})
	if !maps.EqualFunc(got, want.partitions, slices.Equal) {
		g.t.Errorf("in generation %d the consumers were assigned %v, want %v", want.generation, got, want.partitions)
	}
}

// heard returns what each member of a generation has logged of its assignment.
func (g kafkaGroup) heard(ctx context.Context, generation int32) (map[string][]int32, error) {
	got := map[string][]int32{}
	for _, pod := range g.pods(ctx) {
		said, err := g.said(pod)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(said) {
			var event struct {
				Message    string  `json:"msg"`
				Member     string  `json:"member"`
				Generation int32   `json:"generation"`
				Partitions []int32 `json:"partitions"`
			}
			if json.Unmarshal([]byte(line), &event) == nil && event.Message == "assigned" && event.Generation == generation {
				got[event.Member] = slices.Sorted(slices.Values(event.Partitions))
			}
		}
	}
	return got, nil
}
