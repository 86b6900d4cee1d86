package assignment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// Slots maps ids to names of pods.
type Slots map[int]string

// IDs returns the ids in ascending order.
func (s Slots) IDs() []int {
	ids := slices.AppendSeq(make([]int, 0, len(s)), maps.Keys(s))
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
	b := make([]byte, 0, 2+48*len(s)) // few entries are longer
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

// entryOverhead is the number of bytes of an entry in addition to its id and its name: four quotes, a colon, and a comma.
const entryOverhead = 6

// ParseSlots reads a flat JSON object from ids to names. It accepts any white space and key order. Otherwise it is strict: ids must be canonical decimals
// in [0, receipt.MaxID], names must be DNS names, and no id and no name may occur twice. The error quotes the offending part.
func ParseSlots(text string) (Slots, error) {
	if slots, ok := parseCanonical(text); ok {
		return slots, nil
	}
	return parseAny(text)
}

// parseCanonical reads the form that Encode writes, which nearly all texts have. The names are slices of text, so there is no allocation for each entry.
// For any other text ok is false, and parseAny finds out what is wrong.
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

// canonicalID accepts the decimals that Encode writes, and not "01", "-1", "+1", "1e3" or " 1".
func canonicalID(text string) (id int, ok bool) {
	const digits = 10 // the number of digits of receipt.MaxID
	if text == "" || len(text) > digits || (text[0] == '0' && text != "0") {
		return 0, false
	}
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, false
		}
		id = 10*id + int(c-'0')
	}
	return id, id <= receipt.MaxID
}

// parseAny reads a JSON object of any layout.
func parseAny(text string) (Slots, error) {
	var entries map[string]string
	err := json.Unmarshal([]byte(text), &entries)
	if err == nil && entries == nil {
		err = errors.New("it is null")
	}
	if err != nil {
		return nil, fmt.Errorf("not a JSON object from ids to names (%w): %s", err, quote(text))
	}
	slots := make(Slots, len(entries))
	names := make(map[string]bool, len(entries))
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		id, ok := canonicalID(key)
		switch name := entries[key]; {
		case !ok:
			return nil, fmt.Errorf("not an id: %s", quote(key))
		case !validName(name):
			return nil, fmt.Errorf("id %d: not a name: %s", id, quote(name))
		case names[name]:
			return nil, fmt.Errorf("%s stands twice", quote(name))
		default:
			slots[id], names[name] = name, true
		}
	}
	if strings.Count(text, ":") != len(entries) { // no id and no name has a colon
		return nil, fmt.Errorf("an id stands twice: %s", quote(text))
	}
	return slots, nil
}

// validName reports whether Kubernetes accepts name as the name of a pod: a DNS subdomain (RFC 1123).
// Names like "." and ".." must not pass: no client sends a request for them, so no pod could ever confirm whether the
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

// quote quotes and shortens a text that another program wrote, so that it fits into a log line or an Event.
func quote(text string) string {
	const most = 160 // with what is escaped
	short := text[:min(len(text), 80)]
	for len(strconv.Quote(short)) > most {
		short = short[:len(short)-1]
	}
	if len(short) < len(text) {
		short = string(bytes.ToValidUTF8([]byte(short), nil)) + "…"
	}
	return strconv.Quote(short)
}
