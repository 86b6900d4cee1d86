package object

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// Words of the API.
const (
	Metadata  = "metadata"
	Failed    = "Failed"
	Succeeded = "Succeeded"
)

// Object is an API object as JSON has it. A stored one is never changed, only replaced.
type Object = map[string]any

// Clone returns a deep copy.
func Clone(o Object) Object { return runtime.DeepCopyJSON(o) }

// At returns the map below o that the path names, nil if there is none.
func At(o Object, path ...string) Object {
	for _, p := range path {
		next, ok := o[p].(Object)
		if !ok {
			return nil
		}
		o = next
	}
	return o
}

// Need returns the map below o that the path names and makes it if there is none.
func Need(o Object, path ...string) Object {
	for _, p := range path {
		next, ok := o[p].(Object)
		if !ok {
			next = Object{}
			o[p] = next
		}
		o = next
	}
	return o
}

// Text returns the string that the path names, "" if there is none.
func Text(o Object, path ...string) string {
	last := len(path) - 1
	s, _ := At(o, path[:last]...)[path[last]].(string)
	return s
}

// Number returns the number that the path names, 0 if there is none.
func Number(o Object, path ...string) int {
	last := len(path) - 1
	switch n := At(o, path[:last]...)[path[last]].(type) {
	case int64:
		return int(n)
	case float64:
		return int(n)
	}
	return 0
}

// Name is that of the metadata.
func Name(o Object) string { return Text(o, Metadata, "name") }

// UID is that of the metadata.
func UID(o Object) string { return Text(o, Metadata, "uid") }

// Terminating reports whether the object is being deleted.
func Terminating(o Object) bool { return Text(o, Metadata, "deletionTimestamp") != "" }

// Annotation returns the value of one annotation, "" if there is none.
func Annotation(o Object, key string) string { return Text(o, Metadata, "annotations", key) }

// Labels are the keys and values of all labels.
func Labels(o Object) map[string]string { return texts(o, "labels") }

// Annotations are the keys and values of all annotations.
func Annotations(o Object) map[string]string { return texts(o, "annotations") }

// texts are the keys and values of a map in the metadata.
func texts(o Object, field string) map[string]string {
	out := map[string]string{}
	for key, value := range At(o, Metadata, field) {
		if s, ok := value.(string); ok {
			out[key] = s
		}
	}
	return out
}

// Ended reports whether a pod's phase says that it has ended.
func Ended(o Object) bool {
	phase := Text(o, "status", "phase")
	return phase == Failed || phase == Succeeded
}

// SetText sets or, with an empty value, removes a key of a map in the metadata.
func SetText(o Object, field, key, value string) {
	m := Need(o, Metadata, field)
	if value == "" {
		delete(m, key)
		return
	}
	m[key] = value
}

// Controller returns the UID of what controls o.
func Controller(o Object) string {
	refs, _ := At(o, Metadata)["ownerReferences"].([]any)
	for _, r := range refs {
		ref, _ := r.(Object)
		if c, _ := ref["controller"].(bool); c {
			return Text(ref, "uid")
		}
	}
	return ""
}
