package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/idalloc/idalloc/pkg/placement"
)

// place is a partition of a topic.
type place struct {
	topic     string
	partition int32
}

// look is how often the list of topics is read again.
const look = time.Second

// find returns the place that a list gives to a number of the workload. Each line of the list has the name of a topic and the numbers of its
// partitions in ascending order, such as "orders 0-47". ok is false if no topic has the number.
func find(list string, number int) (at place, ok bool, err error) {
	for line := range strings.Lines(list) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 2 {
			return place{}, false, fmt.Errorf("%q is not a topic and its numbers", line)
		}
		numbers, err := placement.Parse(fields[1], placement.MaxCount)
		if err != nil {
			return place{}, false, fmt.Errorf("topic %s: %w", fields[0], err)
		}
		partition := int32(0)
		for n := range numbers.All() {
			if n == number {
				return place{fields[0], partition}, true, nil
			}
			partition++
		}
	}
	return place{}, false, nil
}

// create makes a topic where there is none.
func create(ctx context.Context, admin *kadm.Client, topic string, partitions int32) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	there, err := admin.ListTopics(ctx, topic) // it may be there, and this client may not make topics
	if err == nil && !there.Has(topic) {
		_, err = admin.CreateTopic(ctx, partitions, -1, nil, topic)
	}
	if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	return nil
}

// dead returns the topic of the records of a topic that can never be processed. No pod consumes it: look into it.
func dead(topic string) string { return topic + "-dead" }

// where returns the place of a number. Without a list there is one topic.
func (c *Consumer) where(number int) (at place, ok bool, err error) {
	if c.Topics == "" {
		return place{c.Topic, int32(number)}, true, nil //nolint:gosec // the contract has at most 4096 partitions
	}
	list, err := os.ReadFile(c.Topics)
	if err != nil {
		return place{}, false, fmt.Errorf("read the list of topics: %w", err)
	}
	return find(string(list), number)
}

// errElsewhere ends the work on a place that the number does not have any more.
var errElsewhere = errors.New("the list of topics has changed")

// while returns a context that ends when the number has another place, or ctx ends. A list that cannot be read changes nothing.
func (c *Consumer) while(ctx context.Context, number int, at place) (context.Context, context.CancelFunc) {
	here, leave := context.WithCancelCause(ctx)
	go func() {
		for here.Err() == nil {
			pause(here, look)
			if now, ok, err := c.where(number); err == nil && (!ok || now != at) {
				leave(errElsewhere)
			}
		}
	}()
	return here, func() { leave(nil) }
}
