// Package topics reads several topics as the partitions of one workload. A file assigns the workload's numbers to the topics. It is read for each reading, so
// the list can change without a restart, for example in a mounted ConfigMap.
package topics

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/idalloc/idalloc/autoscaler/internal/monitor"
	"github.com/idalloc/idalloc/pkg/placement"
)

// Placeholder stands for the name of a topic in a source's queries.
const Placeholder = "{topic}"

// Topic is a topic, and the numbers of its partitions in ascending order. Its partition 0 has the lowest number.
type Topic struct {
	Name    string
	Numbers placement.Set
}

// Source reads all topics of a list.
type Source struct {
	// Path is the file with the list.
	Path string
	// Topic reads one topic by its name.
	Topic func(ctx context.Context, topic string) (monitor.Reading, error)
}

// name matches a topic's name. Names go into queries and paths unchanged.
var name = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// most is the maximum size of the file, in bytes.
const most = 1 << 20

// Parse reads a list: lines with a name and numbers, such as "orders 0-47,64-79". It ignores empty lines and everything after a #.
func Parse(text string) ([]Topic, error) {
	var topics []Topic
	taken, at := placement.Set{}, 0
	for line := range strings.Lines(text) {
		at++
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 2 || !name.MatchString(fields[0]) {
			return nil, fmt.Errorf("line %d is not a topic and its numbers, such as orders 0-47", at)
		}
		numbers, err := placement.Parse(fields[1], placement.MaxCount)
		if err != nil {
			return nil, fmt.Errorf("topic %s: %w", fields[0], err)
		}
		for _, t := range topics {
			if t.Name == fields[0] {
				return nil, fmt.Errorf("topic %s has two lines: write all its numbers in one", t.Name)
			}
		}
		if both := taken.Intersect(numbers); !both.Empty() {
			return nil, fmt.Errorf("topic %s has the numbers %s, which another topic has", fields[0], both)
		}
		taken = taken.Union(numbers)
		topics = append(topics, Topic{Name: fields[0], Numbers: numbers})
	}
	if len(topics) == 0 {
		return nil, errors.New("it names no topic")
	}
	return topics, nil
}

// Read reads all topics. A number without a topic does not grow. A partition that its topic's reading lacks was not measured. If one topic cannot be read, Read
// fails, because nothing could be decided without it.
func (s Source) Read(ctx context.Context) (monitor.Reading, error) {
	list, err := s.list()
	if err != nil {
		return monitor.Reading{}, fmt.Errorf("the list of topics in %s: %w", s.Path, err)
	}
	all := monitor.Reading{Values: map[int]float64{}, Origins: map[int]string{}, Backlogs: map[int]float64{}}
	all.Why, all.Unused = map[int]string{}, placement.Between(0, placement.MaxCount-1)
	names := map[int]string{}
	all.Name = func(number int) string { return cmp.Or(names[number], "partition "+strconv.Itoa(number)) }
	for _, t := range list {
		r, err := s.Topic(ctx, t.Name)
		if err != nil {
			return all, fmt.Errorf("topic %s: %w", t.Name, err)
		}
		if all.At.IsZero() || r.At.Before(all.At) {
			all.At = r.At
		}
		all.Totals, all.Step = r.Totals, max(all.Step, r.Step)
		add(&all, t, r, names)
		all.Unused = all.Unused.Minus(t.Numbers)
	}
	return all, nil
}

// add adds the reading of a topic, and the source's names for its partitions. Totals of a number are compared only if they are of the same topic.
func add(all *monitor.Reading, t Topic, r monitor.Reading, names map[int]string) {
	called := func(partition int) string {
		if r.Name == nil {
			return fmt.Sprintf("partition %d of topic %s", partition, t.Name)
		}
		return r.Name(partition)
	}
	if r.Waiting != nil && all.Waiting == nil {
		all.Waiting = map[int]float64{}
	}
	partition := 0
	for number := range t.Numbers.All() {
		names[number] = called(partition)
		if value, known := r.Values[partition]; known {
			all.Values[number], all.Origins[number] = value, t.Name+" "+r.Origins[partition]
		}
		copied(all.Backlogs, r.Backlogs, number, partition)
		copied(all.Waiting, r.Waiting, number, partition)
		copied(all.Why, r.Why, number, partition)
		partition++
	}
	for _, p := range slices.Sorted(maps.Keys(r.Values)) {
		if p >= partition {
			all.Beyond = append(all.Beyond, called(p))
		}
	}
}

// copied copies a value of a topic's partition.
func copied[V any](to, from map[int]V, number, partition int) {
	if value, known := from[partition]; known {
		to[number] = value
	}
}

func (s Source) list() ([]Topic, error) {
	info, err := os.Stat(s.Path)
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, fmt.Errorf("it has %d bytes, and may have %d", info.Size(), most)
	}
	text, err := os.ReadFile(s.Path)
	if err != nil {
		return nil, err
	}
	return Parse(string(text))
}
