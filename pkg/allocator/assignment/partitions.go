package assignment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// Annotation keys on the owner of a workload with partitions. The user writes the first four, idalloc the others.
const (
	// PartitionCountKey carries the number of partitions that the user wants.
	PartitionCountKey = "idalloc.dev/partition-count"
	// PartitionStrategyKey names the strategy that the user wants.
	PartitionStrategyKey = "idalloc.dev/partition-strategy"
	// PartitionFailoverAfterKey says how long the partitions of an id without a holder wait for its next holder.
	PartitionFailoverAfterKey = "idalloc.dev/partition-failover-after"
	// PartitionTargetKey says which id is to own what, for the strategy external.
	PartitionTargetKey = "idalloc.dev/partition-target"
	// PartitionOwnersKey carries Partitions.
	PartitionOwnersKey = "idalloc.dev/partition-owners"
	// PartitionSealKey carries "<format>:<epoch>:<hash of PartitionOwnersKey>". It changes only when the other one does, so
	// that a version without partitions does not break it.
	PartitionSealKey = "idalloc.dev/partition-seal"
)

// Partitions is what is in force, and which id owns which partitions.
type Partitions struct {
	// Count is the number of partitions. Owners may still have some at or above it, until the ids that own these have
	// yielded them.
	Count int
	// Strategy is the name of the strategy.
	Strategy string
	// Owners has a set for each member, be it empty, and for each other id that still owns partitions.
	Owners placement.Owners
	// Paused are the ids of Owners whose holders want no partitions for now. They may still own some.
	Paused placement.Set
	// Epoch is the owner's epoch when this was written.
	Epoch int64
}

// Same reports whether p and o are equal, apart from the epoch. Either may be nil.
func (p *Partitions) Same(o *Partitions) bool {
	if p == nil || o == nil {
		return p == o
	}
	return p.Count == o.Count && p.Strategy == o.Strategy && p.Owners.Equal(o.Owners) && p.Paused.Equal(o.Paused)
}

// Members returns the ids among which partitions are divided, in ascending order: those that Owners lists and that are not paused. It
// does not know the number of slots, so some may be at or above it.
func (p *Partitions) Members() []int {
	if p == nil {
		return nil
	}
	return slices.DeleteFunc(p.Owners.IDs(), p.Paused.Contains)
}

type partitionsWire struct {
	Count    int             `json:"count"`
	Strategy string          `json:"strategy"`
	Owners   json.RawMessage `json:"owners"`
	Paused   *string         `json:"paused"`
}

// Encode returns the canonical form of the annotation PartitionOwnersKey.
func (p Partitions) Encode() string {
	row := `{"count":` + strconv.Itoa(p.Count) + `,"strategy":"` + p.Strategy + `","owners":` + p.Owners.String()
	if !p.Paused.Empty() {
		row += `,"paused":"` + p.Paused.String() + `"`
	}
	return row + "}"
}

// seal returns the value of PartitionSealKey for the row.
func (p Partitions) seal(row, ownerUID string) string {
	return sealOf(ownerUID, strconv.FormatInt(p.Epoch, 10), []string{PartitionOwnersKey}, map[string]string{PartitionOwnersKey: row})
}

// annotate adds the annotations that store p on the owner with this UID.
func (p *Partitions) annotate(annotations map[string]string, ownerUID string) {
	if p == nil {
		return
	}
	row := p.Encode()
	annotations[PartitionOwnersKey], annotations[PartitionSealKey] = row, p.seal(row, ownerUID)
}

// size returns the bytes of the annotations that store p.
func (p *Partitions) size() int {
	if p == nil {
		return 0
	}
	return len(PartitionOwnersKey) + len(p.Encode()) + len(PartitionSealKey) + sealSize(len(strconv.FormatInt(p.Epoch, 10)))
}

// PartitionKeys returns the keys of the annotations that idalloc writes about partitions.
func PartitionKeys() []string { return []string{PartitionOwnersKey, PartitionSealKey} }

// PartitionRecord is the result of reading the annotations that idalloc wrote about partitions.
type PartitionRecord struct {
	// Partitions is the content, nil if there is none or if it cannot be read.
	Partitions *Partitions
	// Present says that the owner has at least one of the annotations.
	Present bool
	// Sealed says that the seal fits and that all can be read. It does not say who wrote the seal.
	Sealed bool
	// Newer is the seal's format if it is higher than Format, else 0.
	Newer int
	// Problems lists what could not be read.
	Problems []ProblemError
}

// DecodePartitions reads what idalloc wrote about partitions on the owner with this UID. It checks the epoch against now
// with CheckEpoch.
func DecodePartitions(annotations map[string]string, ownerUID string, now time.Time) PartitionRecord {
	row, there := annotations[PartitionOwnersKey]
	seal, sealed := annotations[PartitionSealKey]
	r := PartitionRecord{Present: there || sealed}
	if !r.Present {
		return r
	}
	if format, ok := formatOf(seal); ok && format > Format {
		r.Newer = format
		return r
	}
	p, err := parsePartitions(row)
	if err != nil {
		r.Problems = append(r.Problems, ProblemError{Key: PartitionOwnersKey, Detail: err.Error()})
		return r
	}
	r.Partitions = &p
	parts := strings.Split(seal, ":")
	if len(parts) != 3 {
		return r
	}
	if p.Epoch, err = parseEpoch(parts[1], now); err != nil {
		r.Problems = append(r.Problems, ProblemError{Key: PartitionSealKey, Detail: err.Error()})
		return r
	}
	r.Sealed = p.seal(row, ownerUID) == seal
	return r
}

func parsePartitions(text string) (Partitions, error) {
	var w partitionsWire
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&w); err != nil {
		return Partitions{}, fmt.Errorf("not the owners of partitions: %s", quote(text))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Partitions{}, fmt.Errorf("something follows the JSON object: %s", quote(text))
	}
	if err := checkPartitionCount(w.Count); err != nil {
		return Partitions{}, err
	}
	if !validStrategy(w.Strategy) {
		return Partitions{}, fmt.Errorf("not the name of a strategy: %s", quote(w.Strategy))
	}
	owners, err := placement.ParseOwners(string(w.Owners), placement.MaxCount)
	if err != nil {
		return Partitions{}, err
	}
	paused, err := parsePaused(w.Paused, owners)
	return Partitions{Count: w.Count, Strategy: w.Strategy, Owners: owners, Paused: paused}, err
}

// parsePaused reads the ids that are paused, which owners has to list.
func parsePaused(text *string, owners placement.Owners) (placement.Set, error) {
	if text == nil {
		return placement.Set{}, nil
	}
	paused, err := placement.Parse(*text, MaxID+1)
	if err != nil {
		return placement.Set{}, fmt.Errorf("not the ids that are paused: %w", err)
	}
	if paused.Empty() || !paused.Subset(placement.Of(owners.IDs()...)) {
		return placement.Set{}, fmt.Errorf("the ids that are paused are not listed, or there are none: %s", quote(*text))
	}
	return paused, nil
}

func checkPartitionCount(n int) error {
	if n < 0 || n > placement.MaxCount {
		return fmt.Errorf("%d partitions: use 0 to %d", n, placement.MaxCount)
	}
	return nil
}

// validStrategy reports whether a name is one that stands in JSON and in an annotation as it is: lower-case letters,
// digits and dashes, at most 63 of them.
func validStrategy(name string) bool {
	const most = 63
	return name != "" && len(name) <= most && !strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-'
	})
}

// Never is the value of a time that never comes.
const Never = "never"

// DefaultFailoverAfter is how long the partitions of an id without a holder wait for its next holder.
const DefaultFailoverAfter = 30 * time.Second

// Wish is what the user's annotations say about partitions.
type Wish struct {
	// Count is the number of partitions, and HasCount says that there is such a number.
	Count    int
	HasCount bool
	// Strategy is the name of a strategy, empty if there is none.
	Strategy string
	// FailoverAfter is how long partitions wait for the next holder of their id. It is negative if they wait for ever.
	FailoverAfter time.Duration
	// Target says which id is to own what, nil if nothing valid says so.
	Target placement.Owners
	// Problems lists the values that make no sense. Those count as absent.
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
			w.FailoverAfter = -1
			return nil
		}
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return fmt.Errorf("not a duration such as 30s, and not %s: %s", Never, quote(text))
		}
		w.FailoverAfter = d
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
