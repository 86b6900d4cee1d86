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

// MaxID is the largest id that is read: Kubernetes counts replicas in an int32.
const MaxID = math.MaxInt32 - 1

// Slots maps ids to names of pods (assignment, hand-over), or to short UIDs.
type Slots map[int]string

// ShortUID is what is stored of a pod's UID beside its slot: enough of it, 32 random bits, to tell a pod from another one
// that got its name. All of it would halve the number of replicas that fit.
func ShortUID(uid string) string {
	const length = 8
	return uid[:min(len(uid), length)]
}

// IDs returns the ids in ascending order.
func (s Slots) IDs() []int {
	ids := make([]int, 0, len(s))
	for id := range s {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Of returns the lowest id that names name.
func (s Slots) Of(name string) (id int, ok bool) {
	for i, n := range s {
		if n == name && (!ok || i < id) {
			id, ok = i, true
		}
	}
	return id, ok
}

// Encode returns the canonical form: {"0":"a","1":"b"}, keys in numeric order, no spaces.
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
		b = append(b, s[id]...) // names are checked to need no escaping
		b = append(b, '"')
	}
	return string(append(b, '}'))
}

// entryOverhead is what an entry costs beside its id and its name: four quotes, colon, comma.
const entryOverhead = 6

// ParseSlots reads a flat JSON object from ids to names. White space and key order are free; all
// else is strict: ids are canonical decimals in [0, MaxID], names are DNS names, no id and no name
// stands twice. The error quotes the offending part.
func ParseSlots(text string) (Slots, error) {
	if slots, ok := parseCanonical(text, true); ok {
		return slots, nil
	}
	return parseAny(text, true)
}

// parseUIDs reads ids and short UIDs. Of many pods two may have the same short UID.
func parseUIDs(text string) (Slots, error) {
	if slots, ok := parseCanonical(text, false); ok {
		return slots, nil
	}
	return parseAny(text, false)
}

// parseCanonical reads what Encode writes, which is nearly everything that is ever read, without
// allocating for each entry: the names are parts of text. It leaves all else, ok being false, to
// parseAny, which knows what is wrong with it.
func parseCanonical(text string, unique bool) (slots Slots, ok bool) {
	rest, ok := strings.CutPrefix(text, "{")
	if !ok {
		return nil, false
	}
	if rest == "}" {
		return Slots{}, true
	}
	n := strings.Count(rest, ",") + 1
	slots = make(Slots, n)
	var names map[string]struct{}
	if unique {
		names = make(map[string]struct{}, n)
	}
	previous := -1
	for {
		id, name, after, ok := cutEntry(rest)
		if !ok || id <= previous {
			return nil, false
		}
		slots[id], previous = name, id
		if unique {
			names[name] = struct{}{}
		}
		if after == "}" {
			return slots, !unique || len(names) == len(slots)
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

// canonicalID reads the decimals that parseID accepts.
func canonicalID(text string) (id int, ok bool) {
	const digits = 10 // of MaxID
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
func parseAny(text string, unique bool) (Slots, error) {
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
		if other, twice := seen[name]; twice && unique {
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
	text, _ := key.(string) // a decoder has no other keys
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

// parseID accepts canonical decimals only: "01", "-1", "+1", "1e3" and " 1" are somebody else's.
func parseID(text string) (int, error) {
	id, err := strconv.Atoi(text)
	if err != nil || id < 0 || id > MaxID || strconv.Itoa(id) != text {
		return 0, fmt.Errorf("not an id: %s", quote(text))
	}
	return id, nil
}

// validName accepts what Kubernetes accepts as the name of a pod: a DNS subdomain (RFC 1123), which a UID is too. A
// client refuses to send "." or "..", so the holder of an entry with such a name could never be confirmed.
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

// quote shortens what somebody else wrote, so that a log line or an Event can carry it.
func quote(text string) string {
	const most = 80
	if len(text) > most {
		text = string(bytes.ToValidUTF8([]byte(text[:most]), nil)) + "…"
	}
	return strconv.Quote(text)
}
