package store

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Fields of an object's metadata.
const (
	labelsField      = "labels"
	annotationsField = "annotations"
)

// operation is one step of a JSON Patch (RFC 6902).
type operation map[string]any

// test makes the patch fail unless the path has the value. Nil means that nothing is there.
func test(path string, value any) operation {
	return operation{"op": "test", "path": path, "value": value}
}

func add(path string, value any) operation {
	return operation{"op": "add", "path": path, "value": value}
}

func remove(path string) operation { return operation{"op": "remove", "path": path} }

// pointer builds a JSON Pointer (RFC 6901). It escapes the slashes in annotation keys.
func pointer(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteByte('/')
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(p, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

// change is a change of one key of a pod's labels or annotations. A nil value means that the key is absent.
type change struct {
	field    string // "labels" or "annotations"
	key      string
	old, new *string
	// tested: the patch fails if the key no longer has its old value.
	tested bool
}

// podPatch changes the labels and annotations of a pod if it still has its UID and the tested keys still have their old values. If whole is true, the rest
// of the pod must also be unchanged.
func podPatch(pod *metav1.PartialObjectMetadata, whole bool, changes []change) ([]byte, error) {
	ops := []operation{test("/metadata/uid", pod.UID)}
	if whole {
		ops = append(ops, test("/metadata/resourceVersion", pod.ResourceVersion))
	}
	if pod.Labels == nil { // a patch cannot add a key to a missing map
		ops = append(ops, test("/metadata/labels", nil), add("/metadata/labels", map[string]string{}))
	}
	if pod.Annotations == nil {
		ops = append(ops, test("/metadata/annotations", nil), add("/metadata/annotations", map[string]string{}))
	}
	for _, c := range changes {
		path := pointer("metadata", c.field, c.key)
		if c.tested {
			ops = append(ops, test(path, c.old))
		}
		switch {
		case c.new != nil:
			ops = append(ops, add(path, *c.new))
		case c.old != nil:
			ops = append(ops, remove(path))
		}
	}
	return encode(ops)
}

func encode(ops []operation) ([]byte, error) {
	b, err := json.Marshal(ops)
	if err != nil {
		return nil, fmt.Errorf("patch: %w", err)
	}
	return b, nil
}

func lookup(m map[string]string, key string) *string {
	if v, ok := m[key]; ok {
		return &v
	}
	return nil
}

func same(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
