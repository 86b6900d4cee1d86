// Package kafka reads from Kafka's brokers how much was written to each partition of a topic. Partition 0 of the workload is partition 0 of the topic, and so
// on.
package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/idalloc/idalloc/autoscaler/internal/monitor"
)

// Source reads one topic.
type Source struct {
	Admin *kadm.Client
	Topic string
	// Records: count records, by the end offsets. Otherwise count bytes, by the size of the log on the broker that leads the partition.
	Records bool
	// Group is a consumer group, or "". What it has not committed yet counts as waiting. It requires Records.
	Group string
	// Now is the clock.
	Now func() time.Time
}

// timeout limits one reading.
const timeout = 10 * time.Second

// Read reads the totals. A partition whose broker does not answer counts as not measured.
func (s Source) Read(ctx context.Context) (monitor.Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r := monitor.Reading{
		At: s.Now(), Totals: true, Values: map[int]float64{}, Why: map[int]string{},
		Name: func(partition int) string { return fmt.Sprintf("partition %d of topic %s", partition, s.Topic) },
	}
	read := s.bytes
	if s.Records {
		read = s.records
	}
	if err := read(ctx, &r); err != nil {
		return r, fmt.Errorf("kafka: topic %s: %w", s.Topic, inOurWords(err))
	}
	return r, nil
}

// inOurWords removes the broker's own message from an error. The error code is enough.
func inOurWords(err error) error {
	if code := (*kerr.Error)(nil); errors.As(err, &code) {
		return code
	}
	return err
}

// bytes reads the sizes of the logs. Retention shortens a log, and another leader may have a log of another length. So a total is compared only with a smaller
// one of the same broker.
func (s Source) bytes(ctx context.Context, r *monitor.Reading) error {
	topics, err := s.Admin.ListTopics(ctx, s.Topic)
	if err != nil {
		return err
	}
	topic := topics[s.Topic]
	if topic.Err != nil {
		return topic.Err
	}
	brokers, err := s.Admin.DescribeAllLogDirs(ctx, topics.TopicsSet())
	if shards := (*kadm.ShardErrors)(nil); err != nil && (!errors.As(err, &shards) || shards.AllFailed) {
		return err
	}
	r.Origins = map[int]string{}
	for p, detail := range topic.Partitions {
		r.Why[int(p)] = fmt.Sprintf("the broker that leads %s shows no log of it: it is down, or the user lacks the right Describe on the cluster", r.Called(int(p)))
		for _, dir := range brokers[detail.Leader] { // -1 means that no broker leads; no broker has that number
			log, there := dir.Topics[s.Topic][p]
			if dir.Err == nil && there && !log.IsFuture {
				r.Values[int(p)], r.Origins[int(p)] = float64(log.Size), "broker "+strconv.Itoa(int(detail.Leader))
				delete(r.Why, int(p))
			}
		}
	}
	return nil
}

// records reads the end offsets, and how much the group has not committed.
func (s Source) records(ctx context.Context, r *monitor.Reading) error {
	ends, err := s.Admin.ListEndOffsets(ctx, s.Topic)
	if shards := (*kadm.ShardErrors)(nil); err != nil && (!errors.As(err, &shards) || shards.AllFailed) {
		return err
	}
	for p, end := range ends[s.Topic] {
		if end.Err == nil && end.Offset >= 0 {
			r.Values[int(p)] = float64(end.Offset)
		} else {
			r.Why[int(p)] = fmt.Sprintf("the brokers do not say where %s ends", r.Called(int(p)))
		}
	}
	if len(r.Values) == 0 {
		return s.why(ends)
	}
	if s.Group == "" {
		return nil
	}
	committed, err := s.Admin.FetchOffsets(ctx, s.Group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) { // older brokers report a group that does not exist as one without offsets
		return fmt.Errorf("group %s: %w", s.Group, err)
	}
	starts, err := s.Admin.ListStartOffsets(ctx, s.Topic)
	if err != nil {
		return err
	}
	if waits := s.backlogs(r, starts, committed); waits > 0 && !commits(committed) {
		return fmt.Errorf("group %s does not exist, or has committed nothing yet, so nothing says what waits: is --kafka-group right?", s.Group)
	}
	return nil
}

// backlogs sets how much the group has not committed of each partition, and returns the sum.
func (s Source) backlogs(r *monitor.Reading, starts kadm.ListedOffsets, committed kadm.OffsetResponses) (waits float64) {
	r.Backlogs = map[int]float64{}
	for p, end := range r.Values {
		from, known := starts.Lookup(s.Topic, int32(p)) //nolint:gosec // it was one
		at, has := committed.Lookup(s.Topic, int32(p))  //nolint:gosec // as above
		commits := has && at.At >= 0
		if (has && at.Err != nil) || (!commits && (!known || from.Err != nil)) {
			delete(r.Values, p) // the amount that waits is unknown, so the partition was not measured
			r.Why[p] = fmt.Sprintf("nothing says what group %s has not committed of %s", s.Group, r.Called(p))
			continue
		}
		first := float64(from.Offset)
		if commits {
			first = max(first, float64(at.At))
		}
		r.Backlogs[p] = max(0, end-first)
		waits += r.Backlogs[p]
	}
	return waits
}

// commits reports whether a group has committed offsets of any topic.
func commits(group kadm.OffsetResponses) bool {
	for _, partitions := range group {
		for _, p := range partitions {
			if p.At >= 0 || p.Err != nil {
				return true
			}
		}
	}
	return false
}

// why explains why no partition has an end offset.
func (s Source) why(ends kadm.ListedOffsets) error {
	for _, end := range ends[s.Topic] {
		if end.Err != nil {
			return end.Err
		}
	}
	return errors.New("it has no partitions")
}
