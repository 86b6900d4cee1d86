package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/idalloc/idalloc/pkg/placement"
)

// pile is how many records wait before a killed consumer resumes: more than half a minute of its load.
const pile = 3000

// A consumer is killed, stays away for half a minute, and resumes. While nothing of its partitions is worked off, they have the load that they had:
// no pod goes. What has piled up takes pods as long as it is there, and no longer.
func testAKilledConsumerResumes(t *testing.T) {
	t.Helper()
	b := newBench(t, partitions, nil)
	// One target divides the load among two pods. A second one would be a move that waits for the consumer, and nothing is decided in a move.
	autoscaler := b.autoscale("--kafka-topic="+topic(), "--kafka-measure=records", "--kafka-group=workers", "--catch-up=1m", "--every=45s")
	admin := kadm.NewClient(b.producer)
	load := b.load(topic(), calm)
	b.settled(2)
	fewest := b.fewest(2)

	file := filepath.Join(b.probe, hold)
	must(t, os.WriteFile(file, nil, 0o600))
	pods, err := b.Pods(b.ctx)
	must(t, err)
	must(t, b.Signal(pods["0"].Name, syscall.SIGKILL))
	until(b.ctx, t, "records pile up", func() (bool, error) {
		n, err := waiting(b.ctx, admin, topic())
		return n >= pile, err
	})
	if n := fewest(); n < 2 || strings.Contains(autoscaler.Log(), "1 of 2 pods work off") {
		t.Errorf("there were %d pods while a consumer was away, or one seemed to be enough", n)
	}
	must(t, os.Remove(file))
	until(b.ctx, t, "what has piled up is worked off", func() (bool, error) {
		n, err := waiting(b.ctx, admin, topic())
		return n < pile/10, err
	})
	b.settled(2)
	sent, err := load.Stop()
	must(t, err)
	b.judge(sent)
}

// settled waits until so many pods are asked for, and own all partitions.
func (b *bench) settled(pods int) {
	b.t.Helper()
	until(b.ctx, b.t, strconv.Itoa(pods)+" pods own all partitions", func() (bool, error) {
		replicas, err := b.Replicas(b.ctx)
		if err != nil || replicas != pods {
			return false, err
		}
		owners, err := b.Owners(b.ctx)
		owned := placement.Set{}
		for id, set := range owners {
			if owned = owned.Union(set); set.Empty() || id >= pods {
				return false, err
			}
		}
		return len(owners) == pods && owned.Len() == partitions, err
	})
}

// fewest looks at the number of pods from now on, which is n, and returns a function that returns the lowest and ends that.
func (b *bench) fewest(n int) func() int {
	ctx, cancel := context.WithCancel(b.ctx)
	lowest, done := atomic.Int64{}, make(chan struct{})
	lowest.Store(int64(n))
	go func() {
		defer close(done)
		_ = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) { // it ends with ctx alone
			if n, err := b.Replicas(ctx); err == nil {
				lowest.Store(min(lowest.Load(), int64(n)))
			}
			return false, nil
		})
	}()
	return func() int {
		cancel()
		<-done
		return int(lowest.Load())
	}
}

// A second topic is added to the list while all run on: the consumers consume it, and the autoscaler counts its load.
func testATopicIsAddedToTheList(t *testing.T) {
	t.Helper()
	list := filepath.Join(t.TempDir(), "topics")
	must(t, os.WriteFile(list, []byte("orders 0-7\n"), 0o600))
	b := newBench(t, 8, map[string]string{"TOPICS_FILE": list})
	autoscaler := b.autoscale("--kafka-topic={topic}", "--topics-file="+list, "--kafka-measure=records")
	orders := b.load("orders", capacity/2)
	until(b.ctx, t, "the autoscaler finds that one pod is enough", func() (bool, error) { return strings.Contains(autoscaler.Log(), `"phase": "idle"`), nil })

	_, err := kadm.NewClient(b.producer).CreateTopic(b.ctx, partitions-8, -1, nil, "payments")
	must(t, err)
	payments := b.load("payments", calm-capacity/2)
	must(t, os.WriteFile(list+".new", []byte("orders 0-7\npayments 8-11\n"), 0o600))
	must(t, os.Rename(list+".new", list)) // as a ConfigMap's files change
	b.settled(2)

	sent := map[string]int{}
	for topic, load := range map[string]interface {
		Stop() (map[string]int, error)
	}{"orders": orders, "payments": payments} {
		all, err := load.Stop()
		must(t, err)
		for order, last := range all {
			sent[topic+"/"+order] = last
		}
	}
	b.judge(sent, "orders", "payments")
}
