package inject

import (
	"slices"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// Release removes from a pod template the labels that ask for an id, and what Stream adds for the controller. It reports whether the template had any of them.
// The sidecar stays.
func Release(template map[string]any) (changed bool) {
	out := func(in map[string]any, keys ...string) {
		for _, key := range keys {
			if _, has := in[key]; has {
				delete(in, key)
				changed = true
			}
		}
	}
	meta, _ := template["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	out(labels, AssignLabel, Label)
	out(annotations, AccountKey, assignment.OnCountKey, assignment.FirstNumberKey)

	spec, _ := template["spec"].(map[string]any)
	without := func(in map[string]any, key string, drop func(map[string]any) bool) (dropped bool) {
		all, _ := in[key].([]any)
		left := slices.DeleteFunc(slices.Clone(all), func(e any) bool {
			m, _ := e.(map[string]any)
			return drop(m)
		})
		if len(left) == len(all) {
			return false
		}
		if in[key] = left; len(left) == 0 {
			delete(in, key)
		}
		changed = true
		return true
	}
	without(spec, "schedulingGates", func(g map[string]any) bool { return g["name"] == gate })
	without(spec, "volumes", func(v map[string]any) bool {
		return v["name"] == "idalloc-start-count" || v["name"] == "idalloc-seen-count"
	})
	without(spec, "initContainers", func(c map[string]any) bool { return c["name"] == assignment.CountWatcher })
	files := without(spec, "volumes", func(v map[string]any) bool { return v["name"] == idVolume && v["downwardAPI"] != nil })
	for _, key := range []string{"initContainers", "containers"} {
		all, _ := spec[key].([]any)
		for _, c := range all {
			c, _ := c.(map[string]any)
			without(c, "env", func(e map[string]any) bool {
				from, _ := e["valueFrom"].(map[string]any)
				field, _ := from["fieldRef"].(map[string]any)
				return e["name"] == idEnv && field["fieldPath"] == idField || e["name"] == countEnv && field["fieldPath"] == countField ||
					e["name"] == numberEnv && field["fieldPath"] == numberField
			})
			if files {
				without(c, "volumeMounts", func(m map[string]any) bool { return m["name"] == idVolume })
			}
		}
	}
	return changed
}
