package placement

import (
	"fmt"
	"strconv"
	"strings"
)

// String returns the canonical text: "0-15,40" for 0 to 15 and 40, "" for the empty set. [Parse] reads it.
func (s Set) String() string { return string(s.appendText(nil)) }

func (s Set) appendText(b []byte) []byte {
	for i, r := range s.spans {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(r.first), 10)
		if r.first < r.last {
			b = append(b, '-')
			b = strconv.AppendInt(b, int64(r.last), 10)
		}
	}
	return b
}

// Parse reads only the text that [Set.String] writes: the ranges ascend, no two of them touch, and a range of one partition is one number. All partitions
// must be below count. The required memory depends on the length of the text, not on the numbers in it.
func Parse(text string, count int) (Set, error) {
	spans, err := parseSpans(text, count)
	if err != nil {
		return Set{}, err
	}
	s := newSet(merged(spans))
	if canonical := s.String(); canonical != text {
		return Set{}, fmt.Errorf("%s is not in canonical form, which is %s", quote(text), quote(canonical))
	}
	return s, nil
}

// parseAnyOrder reads what a person or another program wrote: the ranges may be in any order, may touch, and may have spaces around them. A partition that
// is named twice is an error, because it suggests a mistake.
func parseAnyOrder(text string, count int) (Set, error) {
	spans, err := parseSpans(strings.ReplaceAll(text, " ", ""), count)
	if err != nil {
		return Set{}, err
	}
	named := 0
	for _, s := range spans {
		named += s.size() // a text is too short for a sum that overflows
	}
	s := newSet(merged(spans))
	if named > s.Len() {
		return Set{}, fmt.Errorf("%s names a partition twice", quote(text))
	}
	return s, nil
}

// parseSpans reads ranges between commas.
func parseSpans(text string, count int) ([]span, error) {
	if text == "" {
		return nil, nil
	}
	spans := make([]span, 0, strings.Count(text, ",")+1)
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		a, okA := parseID(first)
		b, okB := parseID(last)
		switch {
		case !okA || !okB || b < a || len(last) > maxDigits:
			return nil, fmt.Errorf("%s is no range of partitions below 10^%d", quote(part), maxDigits)
		case b >= count:
			return nil, fmt.Errorf("partition %d is not below %d", b, count)
		}
		spans = append(spans, spanOf(a, b))
	}
	return spans, nil
}

// maxDigits keeps every parsed number below the highest partition number.
const maxDigits = 9

// quote shortens a text that another program wrote, so that it fits into an error.
func quote(text string) string {
	const most = 60 // each of these bytes may be printed as four
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strconv.Quote(text)
}
