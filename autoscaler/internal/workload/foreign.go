package workload

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// unknown returns the managers under which an API server keeps fields whose writer it no longer knows or never knew.
func unknown() []string { return []string{"ancient-changes", "before-first-apply"} }

// foreign names another writer of the target. It is empty if an autoscaler wrote it, or if the writer is unknown.
func foreign(fields []metav1.ManagedFieldsEntry) string {
	who := ""
	for i := range fields {
		switch {
		case !wrote(&fields[i], "f:metadata", "f:annotations", "f:"+assignment.PartitionTargetKey):
		case fields[i].Manager == FieldManager:
			return ""
		default:
			who = fmt.Sprintf("field manager %q", fields[i].Manager)
		}
	}
	return who
}

// scaler returns the field manager that last wrote the number of pods, empty if unknown, and the latest time at which that can have been. The API server keeps
// no time for writes of the scale subresource, but after each of them the controller writes the status.
func scaler(fields []metav1.ManagedFieldsEntry) (who string, at time.Time) {
	var last *metav1.ManagedFieldsEntry
	var status time.Time
	for i := range fields {
		entry := &fields[i]
		if wrote(entry, "f:spec", "f:replicas") && (last == nil || !entry.Time.Before(last.Time)) {
			last = entry
		}
		if entry.Subresource == "status" && entry.Time != nil && entry.Time.After(status) {
			status = entry.Time.Time
		}
	}
	switch {
	case last == nil:
		return "", at
	case last.Subresource == "scale":
		at = status
	}
	return last.Manager, at
}

// wrote reports whether a known program wrote a field.
func wrote(entry *metav1.ManagedFieldsEntry, path ...string) bool {
	if entry.FieldsV1 == nil || slices.Contains(unknown(), entry.Manager) {
		return false
	}
	fields := json.RawMessage(entry.FieldsV1.GetRawBytes())
	for _, name := range path {
		var below map[string]json.RawMessage
		if json.Unmarshal(fields, &below) != nil {
			return false
		}
		var there bool
		if fields, there = below[name]; !there {
			return false
		}
	}
	return true
}
