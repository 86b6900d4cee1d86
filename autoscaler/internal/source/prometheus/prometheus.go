// Package prometheus reads the speeds of partitions with a query to Prometheus, or to a server with the same API.
package prometheus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/idalloc/idalloc/autoscaler/internal/monitor"
	"github.com/idalloc/idalloc/autoscaler/internal/source/web"
	"github.com/idalloc/idalloc/pkg/placement"
)

// Source runs one query. The result is a vector with one series for each partition.
type Source struct {
	Server web.Server
	// Query is in PromQL. Its result must be speeds, as from rate().
	Query string
	// Label is the label that names the partition. Prefix is the text before the number in its value.
	Label, Prefix string
	// Now is the clock.
	Now func() time.Time
}

// answer is the response of /api/v1/query.
type answer struct {
	Status   string            `json:"status"`
	Warnings []json.RawMessage `json:"warnings"`
	Data     struct {
		ResultType string   `json:"resultType"`
		Result     []series `json:"result"`
	} `json:"data"`
}

type series struct {
	Metric map[string]string  `json:"metric"`
	Value  [2]json.RawMessage `json:"value"` // the time in seconds, and the value as text
}

// Read runs the query. A warning counts as an error, because part of the result may be missing.
func (s Source) Read(ctx context.Context) (monitor.Reading, error) {
	r := monitor.Reading{At: s.Now(), Values: map[int]float64{}}
	var a answer
	if err := s.Server.Get(ctx, "/api/v1/query", url.Values{"query": {s.Query}}, &a); err != nil {
		return r, fmt.Errorf("prometheus: %w", err)
	}
	switch {
	case a.Status != "success":
		return r, errors.New("prometheus: the query failed: ask it by hand to see why")
	case len(a.Warnings) > 0:
		return r, fmt.Errorf("prometheus: the result may lack something, as %d warnings say: ask the query by hand to see them", len(a.Warnings))
	case a.Data.ResultType != "vector":
		return r, errors.New("prometheus: the result is no instant vector: write a query whose result is one")
	}
	for i, one := range a.Data.Result {
		partition, value, err := s.entry(one, fmt.Sprintf("series %d of %d", i+1, len(a.Data.Result)))
		if err != nil {
			return r, fmt.Errorf("prometheus: %w", err)
		}
		if _, twice := r.Values[partition]; twice && partition < placement.MaxCount {
			return r, fmt.Errorf("prometheus: two series are of partition %d: write sum by (%s) (...)", partition, s.Label)
		}
		r.Values[partition] = value
	}
	return r, nil
}

// entry reads one series. Its errors show only which series it is and nothing of its content, as in package web.
func (s Source) entry(one series, which string) (partition int, value float64, err error) {
	name := one.Metric[s.Label]
	if name == "" {
		return 0, 0, fmt.Errorf("%s has no label %q, or an empty one, so nothing says which partition it is of: leave it out of the query, which shows it if you ask it by hand", which, s.Label)
	}
	number, prefixed := strings.CutPrefix(name, s.Prefix)
	partition, err = strconv.Atoi(number)
	// A number that is too large for an int belongs to a partition that the workload does not have.
	if (err != nil && !errors.Is(err, strconv.ErrRange)) || !prefixed || strings.Trim(number, "0123456789") != "" {
		return 0, 0, fmt.Errorf("label %s of %s is not %q with a number behind it: leave it out of the query, which shows it if you ask it by hand, or set --prometheus-prefix",
			s.Label, which, s.Prefix)
	}
	var text string
	if json.Unmarshal(one.Value[1], &text) != nil {
		return 0, 0, fmt.Errorf("the series of partition %d has no value", partition)
	}
	if value, err = strconv.ParseFloat(text, 64); err != nil {
		return 0, 0, fmt.Errorf("the value of partition %d is no number", partition)
	}
	return partition, value, nil
}
