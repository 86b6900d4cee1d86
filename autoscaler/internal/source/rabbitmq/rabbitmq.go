// Package rabbitmq reads from RabbitMQ's management API how many messages were published to each queue of a family, and how many wait.
package rabbitmq

import (
	"context"
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

// queue is one queue. message_stats is missing while nothing has happened to it.
type queue struct {
	Name     string   `json:"name"`
	Messages *float64 `json:"messages"`
	Stats    *struct {
		Publish *float64 `json:"publish"`
	} `json:"message_stats"` //nolint:tagliatelle // RabbitMQ's
}

// Read reads the totals of published messages and the numbers of those that wait. A queue that no message was ever published to has the
// total 0; one that has messages and no total, as after a restart of the statistics, was not measured.
func (s Source) Read(ctx context.Context) (monitor.Reading, error) {
	r := monitor.Reading{At: s.Now(), Totals: true, Step: s.Interval, Values: map[int]float64{}, Backlogs: map[int]float64{}}
	var queues []queue
	columns := url.Values{"columns": {"name,messages,message_stats.publish"}}
	if err := s.Server.Get(ctx, "/api/queues/"+url.PathEscape(s.VHost), columns, &queues); err != nil {
		return r, fmt.Errorf("rabbitmq: %w", err)
	}
	for _, q := range queues {
		number, ours := strings.CutPrefix(q.Name, s.Prefix)
		partition, err := strconv.Atoi(number)
		if !ours || err != nil || strconv.Itoa(partition) != number {
			continue // a queue of another program
		}
		if q.Messages == nil {
			continue
		}
		r.Backlogs[partition] = *q.Messages
		switch {
		case q.Stats != nil && q.Stats.Publish != nil:
			r.Values[partition] = *q.Stats.Publish
		case *q.Messages == 0:
			r.Values[partition] = 0
		}
	}
	if len(r.Values) == 0 {
		return r, fmt.Errorf("rabbitmq: none of %d queues of virtual host %s is called %sNUMBER and has statistics", len(queues), s.VHost, s.Prefix)
	}
	return r, nil
}
