package placement

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ParseTarget reads the target of the strategy external, which a person or an autoscaler wrote. Ids and ranges may be in any order, with any space between
// them. All partitions must be below count, and no id and no partition may be named twice. After any error, nothing of it counts. A partition that is not
// named has no target.
func ParseTarget(text string, count int) (Owners, error) {
	d := json.NewDecoder(strings.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, notTarget(text)
	}
	o := Owners{}
	for d.More() {
		key, set, err := readPair(d)
		if err != nil {
			return nil, notTarget(text)
		}
		id, ok := parseID(key)
		if !ok {
			return nil, fmt.Errorf("%s is no id", quote(key))
		}
		if _, twice := o[id]; twice {
			return nil, fmt.Errorf("id %d is named twice", id)
		}
		if o[id], err = parseAnyOrder(set, count); err != nil {
			return nil, fmt.Errorf("id %d: %w", id, err)
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, notTarget(text)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, notTarget(text)
	}
	if err := o.disjoint(); err != nil {
		return nil, err
	}
	return o, nil
}

// readPair reads a key and its value from a JSON object. Both must be strings.
func readPair(d *json.Decoder) (key, value string, err error) {
	for _, text := range []*string{&key, &value} {
		t, err := d.Token()
		if err != nil {
			return "", "", err
		}
		s, ok := t.(string)
		if !ok {
			return "", "", errors.New("not a string")
		}
		*text = s
	}
	return key, value, nil
}

func notTarget(text string) error {
	return fmt.Errorf(`not a JSON object such as {"0":"0-15,40","1":"16-31"}: %s`, quote(text))
}
