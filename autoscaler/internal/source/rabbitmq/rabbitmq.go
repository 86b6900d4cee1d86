// Package rabbitmq reads from RabbitMQ's management API how many messages were published to each queue of a family, and how many wait.
package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/idalloc/idalloc/autoscaler/internal/monitor"
	"github.com/idalloc/idalloc/autoscaler/internal/source/web"
)

// Interval is how often RabbitMQ's nodes count by default (collect_statistics_interval).
const Interval = 5 * time.Second

// Source reads the queues PREFIX0, PREFIX1 and so on. Each queue is a partition.
type Source struct {
	// Server is the management API, which usually listens on port 15672. The user needs the tag monitoring or management.
	Server web.Server
	// VHost is the virtual host, / by default.
	VHost string
	// Prefix is the text before the number in a queue's name.
	Prefix string
	// Interval is how often the nodes count. A window must span several counts.
	Interval time.Duration
	// Now is the clock.
	Now func() time.Time
}

// queue is one queue. Each absent field has one meaning. Without Messages, the broker does not know the queue's state, as in the first seconds after its start,
// or while the queue's node is down. Without Publish, nothing was published since the broker began to count, unless it does not count at all.
type queue struct {
	Name     string   `json:"name"`
	Messages *float64 `json:"messages"`
	Ready    *float64 `json:"messages_ready"` //nolint:tagliatelle // RabbitMQ's
	Stats    *struct {
		Publish *float64 `json:"publish"`
	} `json:"message_stats"` //nolint:tagliatelle // RabbitMQ's
}

// overview shows what the broker counts. Brokers with the same API, such as LavinMQ, omit both fields.
type overview struct {
	RatesMode    string `json:"rates_mode"`    //nolint:tagliatelle // RabbitMQ's
	DisableStats bool   `json:"disable_stats"` //nolint:tagliatelle // RabbitMQ's
}

// Read reads how many messages were published and how many wait. It returns an error if the broker does not count.
func (s Source) Read(ctx context.Context) (monitor.Reading, error) {
	r := monitor.Reading{
		At: s.Now(), Totals: true, Step: s.Interval, Values: map[int]float64{}, Why: map[int]string{}, Backlogs: map[int]float64{}, Waiting: map[int]float64{},
		Name: func(partition int) string { return "queue " + s.Prefix + strconv.Itoa(partition) },
	}
	var queues []queue
	columns := url.Values{"columns": {"name,messages,messages_ready,message_stats.publish"}}
	if err := s.Server.Get(ctx, "/api/queues/"+url.PathEscape(s.VHost), columns, &queues); err != nil {
		return r, fmt.Errorf("rabbitmq: %w", err)
	}
	ours, silent := 0, 0
	for _, q := range queues {
		number, prefixed := strings.CutPrefix(q.Name, s.Prefix)
		partition, err := strconv.Atoi(number)
		if !prefixed || err != nil || partition < 0 || strconv.Itoa(partition) != number {
			continue // another program's queue
		}
		ours++
		if q.Messages == nil {
			r.Why[partition] = fmt.Sprintf("the broker does not say how many messages %s has: it has just started, or the queue's node is down", r.Called(partition))
			continue
		}
		r.Values[partition], r.Backlogs[partition] = 0, *q.Messages
		if q.Ready != nil {
			r.Waiting[partition] = *q.Ready
		}
		if q.Stats != nil && q.Stats.Publish != nil {
			r.Values[partition] = *q.Stats.Publish
		} else {
			silent++
		}
	}
	if ours == 0 {
		return r, fmt.Errorf("rabbitmq: none of %d queues of virtual host %s is called %sNUMBER", len(queues), s.VHost, s.Prefix)
	}
	if silent > 0 {
		return r, s.counts(ctx)
	}
	return r, nil
}

// counts returns an error if the broker does not count what is published. Otherwise every queue would look as if nothing came.
func (s Source) counts(ctx context.Context) error {
	var o overview
	if err := s.Server.Get(ctx, "/api/overview", url.Values{"columns": {"rates_mode,disable_stats"}}, &o); err != nil {
		return fmt.Errorf("rabbitmq: %w", err)
	}
	switch {
	case o.RatesMode == "none":
		return errors.New("rabbitmq: the broker does not count what is published, because its management.rates_mode is none: set it to basic")
	case o.DisableStats:
		return errors.New("rabbitmq: the broker does not count what is published: remove management.disable_stats and management_agent.disable_metrics_collector from its configuration")
	}
	return nil
}
