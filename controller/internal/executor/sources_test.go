package executor

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
)

// The generation of a StatefulSet or a Job does not count annotations. What decisions need of them is to be heard of.
func TestTheCacheShowsThatAnnotationsOfAnOwnerChange(t *testing.T) {
	trimmed := func(annotations map[string]string) any {
		out, err := trimMeta(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "worker", Annotations: annotations}})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	before := map[string]string{assignment.Key: `{"0":"a"}`, "other": "a"}
	for key, heard := range map[string]bool{
		assignment.Key: true, assignment.HandoverKey: true, assignment.PartitionOwnersKey: true, EvictKey: true, revisionKey: true, assignment.PartitionCountKey: true,
		assignment.PartitionStrategyKey: true, assignment.PartitionFailoverAfterKey: true, assignment.PartitionGiveBackAfterKey: true, assignment.PartitionTargetKey: true,
		"other": false,
	} {
		after := map[string]string{assignment.Key: before[assignment.Key], "other": before["other"]}
		after[key] = "changed"
		if got := !equality.Semantic.DeepEqual(trimmed(before), trimmed(after)); got != heard {
			t.Errorf("a change of %s is heard: %v", key, got)
		}
	}
}
