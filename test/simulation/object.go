package simulation

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
)

// Words of the API.
const (
	metadata  = "metadata"
	failed    = "Failed"
	succeeded = "Succeeded"
)

// object is an API object as JSON has it. A stored one is never changed, only replaced.
type object = map[string]any

// Kinds of objects, by their resource.
const (
	pods         = "pods"
	deployments  = "deployments"
	replicaSets  = "replicasets"
	statefulSets = "statefulsets"
	jobs         = "jobs"
)

type kind struct {
	resource, name, group, apiVersion string
	// count is the field below spec that says how many pods there are to be.
	count string
	// annotationsCount says that a change of annotations raises metadata.generation, as only a Deployment's does.
	annotationsCount bool
}

func kindOf(resource string) kind {
	switch resource {
	case pods:
		return kind{resource: pods, name: "Pod", apiVersion: "v1"}
	case deployments:
		return kind{deployments, "Deployment", "apps", "apps/v1", "replicas", true}
	case replicaSets:
		return kind{replicaSets, "ReplicaSet", "apps", "apps/v1", "replicas", false}
	case statefulSets:
		return kind{statefulSets, "StatefulSet", "apps", "apps/v1", "replicas", false}
	case jobs:
		return kind{jobs, "Job", "batch", "batch/v1", "parallelism", false}
	}
	return kind{resource: resource}
}

func clone(o object) object { return runtime.DeepCopyJSON(o) }

// at returns the map below o that the path names, nil if there is none.
func at(o object, path ...string) object {
	for _, p := range path {
		next, ok := o[p].(object)
		if !ok {
			return nil
		}
		o = next
	}
	return o
}

// need returns the map below o that the path names and makes it if there is none.
func need(o object, path ...string) object {
	for _, p := range path {
		next, ok := o[p].(object)
		if !ok {
			next = object{}
			o[p] = next
		}
		o = next
	}
	return o
}

func text(o object, path ...string) string {
	last := len(path) - 1
	s, _ := at(o, path[:last]...)[path[last]].(string)
	return s
}

func number(o object, path ...string) int {
	last := len(path) - 1
	switch n := at(o, path[:last]...)[path[last]].(type) {
	case int64:
		return int(n)
	case float64:
		return int(n)
	}
	return 0
}

func name(o object) string      { return text(o, metadata, "name") }
func uid(o object) string       { return text(o, metadata, "uid") }
func terminating(o object) bool { return text(o, metadata, "deletionTimestamp") != "" }
func annotation(o object, key string) string {
	return text(o, metadata, "annotations", key)
}

func labels(o object) map[string]string      { return texts(o, "labels") }
func annotations(o object) map[string]string { return texts(o, "annotations") }

// texts are the keys and values of a map in the metadata.
func texts(o object, field string) map[string]string {
	out := map[string]string{}
	for key, value := range at(o, metadata, field) {
		if s, ok := value.(string); ok {
			out[key] = s
		}
	}
	return out
}

// ended reports whether a pod's phase says that it has ended.
func ended(o object) bool {
	phase := text(o, "status", "phase")
	return phase == failed || phase == succeeded
}

// setText sets or, with an empty value, removes a key of a map in the metadata.
func setText(o object, field, key, value string) {
	m := need(o, metadata, field)
	if value == "" {
		delete(m, key)
		return
	}
	m[key] = value
}

// controller returns the UID of what controls o.
func controller(o object) string {
	refs, _ := at(o, metadata)["ownerReferences"].([]any)
	for _, r := range refs {
		ref, _ := r.(object)
		if c, _ := ref["controller"].(bool); c {
			return text(ref, "uid")
		}
	}
	return ""
}

func controlledBy(k kind, owner object) []any {
	return []any{object{
		"apiVersion": k.apiVersion, "kind": k.name, "name": name(owner), "uid": uid(owner), "controller": true, "blockOwnerDeletion": true,
	}}
}

// equalBut compares two objects without these fields of the metadata.
func equalBut(a, b object, ignored ...string) bool {
	return sameMaps(a, b, []string{metadata}) && sameMaps(at(a, metadata), at(b, metadata), ignored)
}

// sameMaps compares two maps of JSON values without some keys. No map is not an empty one.
func sameMaps(a, b object, ignored []string) bool {
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
	case object:
		y, ok := y.(object)
		return ok && sameMaps(x, y, nil)
	case []any:
		y, ok := y.([]any)
		return ok && (x == nil) == (y == nil) && slices.EqualFunc(x, y, sameValues)
	}
	if _, ok := y.(object); ok {
		return false
	}
	if _, ok := y.([]any); ok {
		return false
	}
	return x == y
}

// encode returns the JSON of a value, its keys in order.
func encode(o any) []byte { return appendJSON(make([]byte, 0, 1024), o) }

// appendJSON is json.Marshal without reflection: most of what the simulated server does is to encode objects.
func appendJSON(b []byte, value any) []byte {
	switch v := value.(type) {
	case object:
		if v == nil {
			return append(b, "null"...)
		}
		b = append(b, '{')
		for i, key := range slices.Sorted(maps.Keys(v)) {
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
