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

// Interval is how often RabbitMQ's nodes count, unless collect_statistics_interval says something else.
const Interval = 5 * time.Second

// Source reads the queues PREFIX0, PREFIX1 and so on. Each is a partition.
type Source struct {
	// Server is the management API's, which usually listens at port 15672. The user needs the tag monitoring or management.
	Server web.Server
	// VHost is the virtual host, / by default.
	VHost string
	// Prefix is what stands before the number in a queue's name.
	Prefix string
	// Interval is how often the nodes count. A window has to span several counts.
	Interval time.Duration
	// Now is the clock.
	Now func() time.Time
}

// queue is one queue. An absent field has one meaning: Messages, that the broker does not know the queue's state, as in the first seconds after
// its start, or while the queue's node is down; Publish, that nothing was published since the broker counts, unless it does not count at all.
type queue struct {
	Name     string   `json:"name"`
	Messages *float64 `json:"messages"`
	Ready    *float64 `json:"messages_ready"` //nolint:tagliatelle // RabbitMQ's
	Stats    *struct {
		Publish *float64 `json:"publish"`
	} `json:"message_stats"` //nolint:tagliatelle // RabbitMQ's
}

// overview says what the broker counts. Brokers with the same API, such as LavinMQ, leave both out.
type overview struct {
	RatesMode    string `json:"rates_mode"`    //nolint:tagliatelle // RabbitMQ's
	DisableStats bool   `json:"disable_stats"` //nolint:tagliatelle // RabbitMQ's
}

// Read reads the totals of published messages and the numbers of those that wait. Errors say so if the broker does not count.
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
			continue // a queue of another program
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

// counts returns an error if the broker does not count what is published. Then each queue looks as if nothing came.
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
