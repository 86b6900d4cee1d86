// Package fields reads objects without types.
package fields

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Objects returns the objects in the list at the end of a path. It leaves out everything else, and copies nothing.
func Objects(in map[string]any, path ...string) []map[string]any {
	value, _, _ := unstructured.NestedFieldNoCopy(in, path...)
	list, _ := value.([]any)
	all := make([]map[string]any, 0, len(list))
	for _, one := range list {
		if object, is := one.(map[string]any); is {
			all = append(all, object)
		}
	}
	return all
}
