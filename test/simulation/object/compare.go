package object

import (
	"slices"
)

// EqualBut compares two objects without these fields of the metadata.
func EqualBut(a, b Object, ignored ...string) bool {
	return sameMaps(a, b, []string{Metadata}) && sameMaps(At(a, Metadata), At(b, Metadata), ignored)
}

// sameMaps compares two maps of JSON values without some keys. No map is not an empty one.
func sameMaps(a, b Object, ignored []string) bool {
	if (a == nil) != (b == nil) {
		return false
	}
	left := 0
	for key := range b {
		if !slices.Contains(ignored, key) {
			left++
		}
	}
	for key, x := range a {
		if slices.Contains(ignored, key) {
			continue
		}
		y, there := b[key]
		if !there || !sameValues(x, y) {
			return false
		}
		left--
	}
	return left == 0
}

// sameValues compares two JSON values.
func sameValues(x, y any) bool {
	switch x := x.(type) {
	case Object:
		y, ok := y.(Object)
		return ok && sameMaps(x, y, nil)
	case []any:
		y, ok := y.([]any)
		return ok && (x == nil) == (y == nil) && slices.EqualFunc(x, y, sameValues)
	}
	if _, ok := y.(Object); ok {
		return false
	}
	if _, ok := y.([]any); ok {
		return false
	}
	return x == y
}
