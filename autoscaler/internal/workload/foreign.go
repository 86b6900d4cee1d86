package workload

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// foreign says who else wrote the target, empty if an autoscaler did, or if that cannot be known.
func foreign(fields []metav1.ManagedFieldsEntry) string {
	who := ""
	for i := range fields {
		switch {
		case !wroteTarget(&fields[i]):
		case fields[i].Manager == FieldManager:
			return ""
		default:
			who = fmt.Sprintf("field manager %q", fields[i].Manager)
		}
	}
	return who
}

func wroteTarget(entry *metav1.ManagedFieldsEntry) bool {
	var f struct {
		Metadata struct {
			Annotations map[string]json.RawMessage `json:"f:annotations"`
		} `json:"f:metadata"`
	}
	if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &f) != nil {
		return false
	}
	_, wrote := f.Metadata.Annotations["f:"+assignment.PartitionTargetKey]
	return wrote
}
