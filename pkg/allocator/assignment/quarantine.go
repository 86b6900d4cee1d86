package assignment

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// StopGrace is how long the work may run on after a process without contact has fenced itself.
	StopGrace = 10 * time.Second
	// MaxFenceAfter is the longest fence-after that ParseFenceAfter accepts.
	MaxFenceAfter = time.Hour
)

// QuarantineTime returns how long a slot stays free after its holder vanished. fenceAfter is the largest fence-after
// in use. The result is the sum of the holder's own deadline, the time that its work needs to stop, and a margin
// for clocks whose rates differ by up to 5 percent.
func QuarantineTime(fenceAfter time.Duration) time.Duration {
	return fenceAfter + StopGrace + (fenceAfter+StopGrace)/20 + time.Second
}

// Span is a range of slots that one write put in quarantine.
type Span struct {
	// From and To are the first and the last slot. To is MaxID when the range has no end.
	From, To int
	// Epoch is the epoch of that write. It only tells one quarantine from another.
	Epoch int64
}

// Quarantine lists the slots that a process may still use although its pod is gone. The spans are in order and do
// not overlap.
type Quarantine []Span

// Since returns the epoch of the write that put the slot in quarantine. ok is false if the slot is in none.
func (q Quarantine) Since(id int) (epoch int64, ok bool) {
	s, ok := q.Span(id)
	return s.Epoch, ok
}

// Span returns the span that contains the slot. ok is false if none does.
func (q Quarantine) Span(id int) (span Span, ok bool) {
	i, found := slices.BinarySearchFunc(q, id, func(s Span, id int) int {
		switch {
		case s.To < id:
			return -1
		case s.From > id:
			return 1
		}
		return 0
	})
	if !found {
		return Span{}, false
	}
	return q[i], true
}

// Epochs returns the distinct epochs of all spans, in ascending order.
func (q Quarantine) Epochs() []int64 {
	epochs := make([]int64, 0, 4)
	for _, s := range q {
		epochs = append(epochs, s.Epoch)
	}
	slices.Sort(epochs)
	return slices.Compact(epochs)
}

// With returns q extended by the slots from..to. A slot that is already in q keeps its epoch.
func (q Quarantine) With(from, to int, epoch int64) Quarantine {
	out := make(Quarantine, 0, len(q)+2)
	for _, s := range q {
		if from <= to && from < s.From {
			out = append(out, Span{From: from, To: min(to, s.From-1), Epoch: epoch})
		}
		out = append(out, s)
		if s.To >= from {
			from = s.To + 1
		}
	}
	if from <= to {
		out = append(out, Span{From: from, To: to, Epoch: epoch})
	}
	return out.sorted()
}

// WithEach returns q extended by ids, which must be in ascending order. A slot that is already in q keeps its epoch.
func (q Quarantine) WithEach(ids []int, epoch int64) Quarantine {
	out := make(Quarantine, len(q), len(q)+len(ids))
	copy(out, q)
	for _, id := range ids {
		if _, there := q.Since(id); !there {
			out = append(out, Span{From: id, To: id, Epoch: epoch})
		}
	}
	return out.sorted()
}

// Without returns q without ids, which must be in ascending order, and without the spans for which drop returns
// true. drop may be nil.
func (q Quarantine) Without(ids []int, drop func(Span) bool) Quarantine {
	out := make(Quarantine, 0, len(q))
	for _, s := range q {
		if drop != nil && drop(s) {
			continue
		}
		first, _ := slices.BinarySearch(ids, s.From)
		for _, id := range ids[first:] {
			if id > s.To {
				break
			}
			if s.From < id {
				out = append(out, Span{From: s.From, To: id - 1, Epoch: s.Epoch})
			}
			s.From = id + 1
		}
		if s.From <= s.To {
			out = append(out, s)
		}
	}
	return out.sorted()
}

// sorted puts the spans in order and joins neighbours of one epoch, so that equal quarantines are equal slices.
func (q Quarantine) sorted() Quarantine {
	slices.SortFunc(q, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	out := q[:0]
	for _, s := range q {
		if n := len(out); n > 0 && out[n-1].Epoch == s.Epoch && out[n-1].To+1 == s.From {
			out[n-1].To = s.To
			continue
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// Encode returns the canonical form, the slots by epoch: {"1795219200123":"0-3,7,12-"}. "12-" has no end.
func (q Quarantine) Encode() string {
	var b strings.Builder
	b.WriteByte('{')
	byEpoch := slices.Clone(q)
	slices.SortStableFunc(byEpoch, func(a, b Span) int { return cmp.Compare(a.Epoch, b.Epoch) })
	for i, s := range byEpoch {
		switch {
		case i == 0:
			fmt.Fprintf(&b, `"%d":"`, s.Epoch)
		case s.Epoch == byEpoch[i-1].Epoch:
			b.WriteByte(',')
		default:
			fmt.Fprintf(&b, `","%d":"`, s.Epoch)
		}
		b.WriteString(s.text())
	}
	if len(q) > 0 {
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return b.String()
}

func (s Span) text() string {
	switch s.To {
	case s.From:
		return strconv.Itoa(s.From)
	case MaxID:
		return strconv.Itoa(s.From) + "-"
	}
	return strconv.Itoa(s.From) + "-" + strconv.Itoa(s.To)
}

// ParseQuarantine reads what Encode wrote, and nothing else: the form must be canonical, and ranges must not overlap.
// It checks each epoch against now with CheckEpoch. The error quotes the offending part.
func ParseQuarantine(text string, now time.Time) (Quarantine, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	var byEpoch map[string]string
	if err := dec.Decode(&byEpoch); err != nil || byEpoch == nil {
		return nil, fmt.Errorf("not a JSON object of strings: %s", quote(text))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("something follows the JSON object: %s", quote(text))
	}
	var q Quarantine
	for key, ranges := range byEpoch {
		epoch, err := parseEpoch(key, now)
		if err != nil {
			return nil, err
		}
		for r := range strings.SplitSeq(ranges, ",") {
			s, err := parseSpan(r)
			if err != nil {
				return nil, err
			}
			s.Epoch = epoch
			q = append(q, s)
		}
	}
	slices.SortFunc(q, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	for i := 1; i < len(q); i++ {
		if q[i].From <= q[i-1].To {
			return nil, fmt.Errorf("id %d stands twice", q[i].From)
		}
	}
	if q = q.sorted(); q.Encode() != text {
		return nil, fmt.Errorf("not in canonical form: %s", quote(text))
	}
	return q, nil
}

func parseSpan(text string) (Span, error) {
	first, last, isRange := strings.Cut(text, "-")
	from, err := parseID(first)
	if err != nil {
		return Span{}, err
	}
	to := from
	switch {
	case isRange && last == "":
		to = MaxID
	case isRange:
		if to, err = parseID(last); err != nil {
			return Span{}, err
		}
	}
	if to < from {
		return Span{}, fmt.Errorf("not a range of ids: %s", quote(text))
	}
	return Span{From: from, To: to}, nil
}

// ParseFenceAfter reads a fence-after. It must be a Go duration in canonical form, above zero and at most
// MaxFenceAfter.
func ParseFenceAfter(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d.String() != text {
		return 0, fmt.Errorf("not a duration: %s", quote(text))
	}
	if d <= 0 || d > MaxFenceAfter {
		return 0, fmt.Errorf("%s is not in (0, %s]", text, MaxFenceAfter)
	}
	return d, nil
}
