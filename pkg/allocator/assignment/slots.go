package assignment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// MaxID is the largest id. Kubernetes counts replicas in an int32.
const MaxID = math.MaxInt32 - 1

// Slots maps ids to names of pods.
type Slots map[int]string

// IDs returns the ids in ascending order.
func (s Slots) IDs() []int {
	ids := make([]int, 0, len(s))
	for id := range s {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Of returns the lowest id whose value is name. ok is false if there is none.
func (s Slots) Of(name string) (id int, ok bool) {
	for i, n := range s {
		if n == name && (!ok || i < id) {
			id, ok = i, true
		}
	}
	return id, ok
}

// Encode returns the canonical form, with keys in numeric order and without spaces: {"0":"a","1":"b"}.
func (s Slots) Encode() string {
	size := 2
	for _, name := range s {
		size += entryOverhead + 3 + len(name)
	}
	b := make([]byte, 0, size)
	b = append(b, '{')
	for i, id := range s.IDs() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = strconv.AppendInt(b, int64(id), 10)
		b = append(b, `":"`...)
		b = append(b, s[id]...) // needs no escaping: validName has checked every name
		b = append(b, '"')
	}
	return string(append(b, '}'))
}

// entryOverhead is the number of bytes of an entry beside its id and its name: four quotes, a colon, and a comma.
const entryOverhead = 6

// ParseSlots reads a flat JSON object from ids to names. It accepts any white space and key order. It is strict about
// the rest: ids must be canonical decimals in [0, MaxID], names must be DNS names, and no id and no name may occur
// twice. The error quotes the offending part.
func ParseSlots(text string) (Slots, error) {
	if slots, ok := parseCanonical(text); ok {
		return slots, nil
	}
	return parseAny(text)
}

// parseCanonical reads the form that Encode writes. Nearly every text that is ever read has it. The names are slices of
// text, so there is no allocation for each entry. For any other text ok is false, and parseAny finds out what is wrong.
func parseCanonical(text string) (slots Slots, ok bool) {
	rest, ok := strings.CutPrefix(text, "{")
	if !ok {
		return nil, false
	}
	if rest == "}" {
		return Slots{}, true
	}
	n := strings.Count(rest, ",") + 1
	slots = make(Slots, n)
	names := make(map[string]struct{}, n)
	previous := -1
	for {
		id, name, after, ok := cutEntry(rest)
		if !ok || id <= previous {
			return nil, false
		}
		slots[id], previous = name, id
		names[name] = struct{}{}
		if after == "}" {
			return slots, len(names) == len(slots)
		}
		if rest, ok = strings.CutPrefix(after, ","); !ok {
			return nil, false
		}
	}
}

// cutEntry reads one entry, "7":"name", from the start of text.
func cutEntry(text string) (id int, name, after string, ok bool) {
	if text, ok = strings.CutPrefix(text, `"`); !ok {
		return 0, "", "", false
	}
	key, text, ok := strings.Cut(text, `":"`)
	if !ok {
		return 0, "", "", false
	}
	if id, ok = canonicalID(key); !ok {
		return 0, "", "", false
	}
	name, after, ok = strings.Cut(text, `"`)
	return id, name, after, ok && validName(name)
}

// canonicalID reads the decimals that parseID accepts, without allocating an error for the others.
func canonicalID(text string) (id int, ok bool) {
	const digits = 10 // the number of digits of MaxID
	if text == "" || len(text) > digits || (text[0] == '0' && text != "0") {
		return 0, false
	}
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, false
		}
		id = 10*id + int(c-'0')
	}
	return id, id <= MaxID
}

// parseAny reads a JSON object of any layout.
func parseAny(text string) (Slots, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	first, err := dec.Token()
	if err != nil {
		return nil, fmt.Errorf("not JSON: %s", quote(text))
	}
	if first != json.Delim('{') {
		return nil, fmt.Errorf("not a JSON object: %s", quote(text))
	}
	slots := Slots{}
	seen := map[string]int{}
	for dec.More() {
		id, name, err := parseEntry(dec)
		if err != nil {
			return nil, err
		}
		if _, twice := slots[id]; twice {
			return nil, fmt.Errorf("id %d stands twice", id)
		}
		if other, twice := seen[name]; twice {
			return nil, fmt.Errorf("%s stands twice, for id %d and for id %d", quote(name), other, id)
		}
		slots[id], seen[name] = name, id
	}
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("the JSON object does not end: %s", quote(text))
	}
	end := int(dec.InputOffset())
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("something follows the JSON object: %s", quote(text[end:]))
	}
	return slots, nil
}

func parseEntry(dec *json.Decoder) (id int, name string, err error) {
	key, err := dec.Token()
	if err != nil {
		return 0, "", fmt.Errorf("not JSON at byte %d: %w", dec.InputOffset(), err)
	}
	text, _ := key.(string) // a decoder returns every key as a string
	if id, err = parseID(text); err != nil {
		return 0, "", err
	}
	value, err := dec.Token()
	if err != nil {
		return 0, "", fmt.Errorf("id %d: not JSON at byte %d: %w", id, dec.InputOffset(), err)
	}
	name, ok := value.(string)
	if !ok {
		return 0, "", fmt.Errorf("id %d: its value is not a string: %s", id, quote(fmt.Sprint(value)))
	}
	if !validName(name) {
		return 0, "", fmt.Errorf("id %d: not a name: %s", id, quote(name))
	}
	return id, name, nil
}

// parseID accepts canonical decimals only. idalloc never writes "01", "-1", "+1", "1e3" or " 1".
func parseID(text string) (int, error) {
	id, err := strconv.Atoi(text)
	if err != nil || id < 0 || id > MaxID || strconv.Itoa(id) != text {
		return 0, fmt.Errorf("not an id: %s", quote(text))
	}
	return id, nil
}

// validName reports whether Kubernetes accepts name as the name of a pod: a DNS subdomain (RFC 1123).
// Names like "." and ".." must not pass: no client sends a request for them, so nobody could ever confirm whether the
// holder of such an entry lives.
func validName(name string) bool {
	if len(name) > 253 {
		return false
	}
	last := byte('.') // as if a label had just ended
	for _, c := range []byte(name) {
		switch {
		case (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'):
		case c == '-' && last != '.':
		case c == '.' && last != '.' && last != '-':
		default:
			return false
		}
		last = c
	}
	return last != '.' && last != '-'
}

// quote quotes and shortens a text that somebody else wrote, so that it fits into a log line or an Event.
func quote(text string) string {
	const most = 80
	if len(text) > most {
		text = string(bytes.ToValidUTF8([]byte(text[:most]), nil)) + "…"
	}
	return strconv.Quote(text)
}
