package placement

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// maxID is the largest id. Kubernetes counts replicas in an int32.
const maxID = math.MaxInt32 - 1

// Owners maps ids to their partitions. Its ids are the members, including those with an empty set. No partition has two owners.
type Owners map[int]Set

// IDs returns the ids in ascending order.
func (o Owners) IDs() []int { return slices.Sorted(maps.Keys(o)) }

// Equal reports whether both have the same ids with the same partitions.
func (o Owners) Equal(p Owners) bool { return maps.EqualFunc(o, p, Set.Equal) }

// String returns the canonical JSON, with ids in numeric order and without spaces: {"0":"0-15,40","1":"16-31","2":""}.
// [ParseOwners] reads it.
func (o Owners) String() string {
	b := []byte{'{'}
	for i, id := range o.IDs() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = strconv.AppendInt(b, int64(id), 10)
		b = append(b, `":"`...)
		b = o[id].appendText(b)
		b = append(b, '"')
	}
	return string(append(b, '}'))
}

// MarshalJSON returns the text of String.
func (o Owners) MarshalJSON() ([]byte, error) { return []byte(o.String()), nil }

// ParseOwners reads only the text that [Owners.String] writes. All partitions must be below count, and none may have two owners.
func ParseOwners(text string, count int) (Owners, error) {
	rest, ok := strings.CutPrefix(text, "{")
	if !ok {
		return nil, notOwners(text)
	}
	o := Owners{}
	if rest == "}" {
		return o, nil
	}
	for previous := -1; ; {
		id, set, after, ok := cutOwner(rest)
		if !ok {
			return nil, notOwners(rest)
		}
		if id <= previous {
			return nil, fmt.Errorf("id %d does not follow id %d in numeric order", id, previous)
		}
		s, err := Parse(set, count)
		if err != nil {
			return nil, fmt.Errorf("id %d: %w", id, err)
		}
		o[id], previous = s, id
		if after == "}" {
			if err := o.disjoint(); err != nil {
				return nil, err
			}
			return o, nil
		}
		if rest, ok = strings.CutPrefix(after, ","); !ok {
			return nil, notOwners(after)
		}
	}
}

func notOwners(text string) error {
	return fmt.Errorf(`not a JSON object such as {"0":"0-15,40","1":""}, in canonical form: %s`, quote(text))
}

// cutOwner reads one entry, "7":"0-15", from the start of text.
func cutOwner(text string) (id int, set, after string, ok bool) {
	text, ok = strings.CutPrefix(text, `"`)
	if !ok {
		return 0, "", "", false
	}
	key, text, ok := strings.Cut(text, `":"`)
	if !ok {
		return 0, "", "", false
	}
	if id, ok = parseID(key); !ok {
		return 0, "", "", false
	}
	set, after, ok = strings.Cut(text, `"`)
	return id, set, after, ok
}

// parseID reads the canonical decimal of an id or a partition.
func parseID(text string) (id int, ok bool) {
	id, err := strconv.Atoi(text)
	return id, err == nil && id >= 0 && id <= maxID && strconv.Itoa(id) == text
}

// disjoint returns an error if a partition has two owners.
func (o Owners) disjoint() error {
	type owned struct {
		span
		id int
	}
	var all []owned
	for id, s := range o {
		for _, r := range s.spans {
			all = append(all, owned{r, id})
		}
	}
	slices.SortFunc(all, func(a, b owned) int { return cmp.Or(int(a.first)-int(b.first), a.id-b.id) })
	for i := 1; i < len(all); i++ {
		if a, b := all[i-1], all[i]; b.first <= a.last {
			return fmt.Errorf("partition %d is of id %d and of id %d", b.first, a.id, b.id)
		}
	}
	return nil
}
