package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// operation is one step of a JSON Patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Fields of an object's metadata.
const (
	labelsField      = "labels"
	annotationsField = "annotations"
)

// The operations that patches are made of.
const (
	opTest   = "test"
	opAdd    = "add"
	opRemove = "remove"
)

// testNull tests that a path is absent. Its value, null, must not be omitted, as operation would do.
type testNull struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value *int   `json:"value"`
}

func absent(path string) testNull { return testNull{Op: opTest, Path: path} }

// pointer builds a JSON Pointer (RFC 6901). It escapes the slashes in annotation keys.
func pointer(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(p))
	}
	return b.String()
}

// change is a change of one key of a pod's labels or annotations. A nil value means that the key is absent.
type change struct {
	field    string // "labels" or "annotations"
	key      string
	old, new *string
	// tested says that the patch fails if the key does not have its old value any more.
	tested bool
}

// podPatch changes a pod's labels and annotations if the pod still has this UID and the tested keys still have their old
// values. present lists those of the two fields that the pod has at all: a patch cannot add a key to an absent field.
func podPatch(uid string, present []string, changes []change) ([]byte, error) {
	ops := []any{operation{Op: opTest, Path: "/metadata/uid", Value: uid}}
	whole := map[string]map[string]string{}
	for _, c := range changes {
		path := pointer("metadata", c.field, c.key)
		if !slices.Contains(present, c.field) {
			if c.new != nil {
				if whole[c.field] == nil {
					whole[c.field] = map[string]string{}
				}
				whole[c.field][c.key] = *c.new
			}
			continue
		}
		switch {
		case c.tested && c.old == nil:
			ops = append(ops, absent(path))
		case c.tested:
			ops = append(ops, operation{Op: opTest, Path: path, Value: *c.old})
		}
		switch {
		case c.new != nil:
			ops = append(ops, operation{Op: opAdd, Path: path, Value: *c.new})
		case c.old != nil:
			ops = append(ops, operation{Op: opRemove, Path: path})
		}
	}
	for _, field := range []string{labelsField, annotationsField} {
		if values, ok := whole[field]; ok {
			path := pointer("metadata", field)
			ops = append(ops, absent(path), operation{Op: opAdd, Path: path, Value: values})
		}
	}
	return encode(ops)
}

func encode(ops []any) ([]byte, error) {
	b, err := json.Marshal(ops)
	if err != nil {
		return nil, fmt.Errorf("idalloc: patch: %w", err)
	}
	return b, nil
}
