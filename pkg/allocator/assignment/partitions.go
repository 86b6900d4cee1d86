package assignment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/idalloc/idalloc/pkg/placement"
)

// Annotation keys on the owner of a workload with partitions. The user writes all but the last one, which idalloc writes.
const (
	// PartitionCountKey carries the user's number of partitions.
	PartitionCountKey = "idalloc.dev/partition-count"
	// PartitionStrategyKey carries the name of the user's strategy.
	PartitionStrategyKey = "idalloc.dev/partition-strategy"
	// PartitionFailoverAfterKey carries how long the partitions of an id without a holder wait for its next holder.
	PartitionFailoverAfterKey = "idalloc.dev/partition-failover-after"
	// PartitionGiveBackAfterKey carries how long an id must be held before it takes its partitions back from the stand-in, with the strategy primary.
	PartitionGiveBackAfterKey = "idalloc.dev/partition-give-back-after"
	// PartitionTargetKey carries which id should own what, for the strategy external.
	PartitionTargetKey = "idalloc.dev/partition-target"
	// PartitionOwnersKey carries the Row.
	PartitionOwnersKey = "idalloc.dev/partition-owners"
)

// Row has the number of partitions and the strategy in force, and which id owns which partitions.
type Row struct {
	// Count is the number of partitions. Owners may still have some at or above it, until their ids have yielded them.
	Count int
	// Strategy is the name of the strategy.
	Strategy string
	// Owners has a set, perhaps empty, for each member, and for each other id that still owns partitions.
	Owners placement.Owners
}

// Same reports whether r and o are equal. Either may be nil.
func (r *Row) Same(o *Row) bool {
	if r == nil || o == nil {
		return r == o
	}
	return r.Count == o.Count && r.Strategy == o.Strategy && r.Owners.Equal(o.Owners)
}

// Members returns the members, which are the ids in Owners, in ascending order. It does not know the number of slots, so some may be at or above it.
func (r *Row) Members() []int {
	if r == nil {
		return nil
	}
	return r.Owners.IDs()
}

type rowWire struct {
	Count    int             `json:"count"`
	Strategy string          `json:"strategy"`
	Owners   json.RawMessage `json:"owners"`
}

// Encode returns the canonical form of the annotation PartitionOwnersKey.
func (r Row) Encode() string {
	return `{"count":` + strconv.Itoa(r.Count) + `,"strategy":"` + r.Strategy + `","owners":` + r.Owners.String() + "}"
}

func parseRow(text string) (Row, error) {
	var w rowWire
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&w); err != nil {
		return Row{}, fmt.Errorf("not the owners of partitions: %s", quote(text))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Row{}, fmt.Errorf("something follows the JSON object: %s", quote(text))
	}
	if err := checkPartitionCount(w.Count); err != nil {
		return Row{}, err
	}
	if !validStrategy(w.Strategy) {
		return Row{}, fmt.Errorf("not the name of a strategy: %s", quote(w.Strategy))
	}
	owners, err := placement.ParseOwners(string(w.Owners), placement.MaxCount)
	if err != nil {
		return Row{}, err
	}
	return Row{Count: w.Count, Strategy: w.Strategy, Owners: owners}, nil
}

func checkPartitionCount(n int) error {
	if n < 0 || n > placement.MaxCount {
		return fmt.Errorf("%d partitions: use 0 to %d", n, placement.MaxCount)
	}
	return nil
}

// validStrategy reports whether a name needs no escaping in JSON and in an annotation: lower-case letters, digits and dashes, at most 63 of them.
func validStrategy(name string) bool {
	const most = 63
	return name != "" && len(name) <= most && !strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-'
	})
}

// Never is the text for a time that never comes.
const Never = "never"

// DefaultFailoverAfter is how long the partitions of an id without a holder wait for its next holder.
const DefaultFailoverAfter = 30 * time.Second

// Wish is what the user's annotations request for partitions.
type Wish struct {
	// Count is the number of partitions, valid if HasCount is true.
	Count    int
	HasCount bool
	// Strategy is the name of a strategy, empty if there is none.
	Strategy string
	// FailoverAfter is how long partitions wait for the next holder of their id. If negative, they wait forever.
	FailoverAfter time.Duration
	// HasFailoverAfter: the user has set FailoverAfter. Otherwise, with the strategy primary, an id that no pod can take soon fails over at once.
	HasFailoverAfter bool
	// GiveBackAfter is how long an id must be held before it joins other members, with the strategy primary. 0 means at once.
	GiveBackAfter time.Duration
	// Target is which id should own what, nil without a valid annotation.
	Target placement.Owners
	// Problems lists the invalid values, which are ignored.
	Problems []ProblemError
}

// DecodeWish reads the user's annotations about partitions.
func DecodeWish(annotations map[string]string) Wish {
	w := Wish{FailoverAfter: DefaultFailoverAfter}
	read := func(key string, parse func(text string) error) {
		text, ok := annotations[key]
		if !ok {
			return
		}
		if err := parse(text); err != nil {
			w.Problems = append(w.Problems, ProblemError{Key: key, Detail: err.Error()})
		}
	}
	read(PartitionCountKey, func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("not a number: %s", quote(text))
		}
		if err := checkPartitionCount(n); err != nil {
			return err
		}
		w.Count, w.HasCount = n, true
		return nil
	})
	read(PartitionStrategyKey, func(text string) error {
		if !validStrategy(text) {
			return fmt.Errorf("not the name of a strategy: %s", quote(text))
		}
		w.Strategy = text
		return nil
	})
	read(PartitionFailoverAfterKey, func(text string) error {
		if text == Never {
			w.FailoverAfter, w.HasFailoverAfter = -1, true
			return nil
		}
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return fmt.Errorf("not a duration such as 30s, and not %s: %s", Never, quote(text))
		}
		w.FailoverAfter, w.HasFailoverAfter = d, true
		return nil
	})
	read(PartitionGiveBackAfterKey, func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return fmt.Errorf("not a duration such as 30s, or 0s: %s", quote(text))
		}
		w.GiveBackAfter = d
		return nil
	})
	read(PartitionTargetKey, func(text string) error {
		most := placement.MaxCount
		if w.HasCount {
			most = w.Count
		}
		var err error
		w.Target, err = placement.ParseTarget(text, most)
		return err
	})
	return w
}
