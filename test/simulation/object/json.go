package object

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// Encode returns the JSON of a value, its keys in order.
func Encode(o any) []byte { return appendJSON(make([]byte, 0, 1024), o) }

// appendJSON is json.Marshal without reflection: most of what the simulated server does is to encode objects.
func appendJSON(b []byte, value any) []byte {
	switch v := value.(type) {
	case Object:
		if v == nil {
			return append(b, "null"...)
		}
		b = append(b, '{')
		var few [16]string // on the stack: most maps have no more
		keys := few[:0]
		for key := range v {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for i, key := range keys {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendText(b, key), ':')
			b = appendJSON(b, v[key])
		}
		return append(b, '}')
	case []any:
		if v == nil {
			return append(b, "null"...)
		}
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, item)
		}
		return append(b, ']')
	case string:
		return appendText(b, v)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case bool:
		return strconv.AppendBool(b, v)
	}
	return append(b, marshal(value)...)
}

// appendText appends a string as it is, if JSON has it so.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return append(b, marshal(s)...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

func marshal(value any) []byte {
	b, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("simulation: an object of JSON values does not encode: %v", err))
	}
	return b
}
