package allocator

import (
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// A list of a cache that is behind lacked a new pod. Its partitions are not to go to others long after, as soon as it leaves.
func TestAHolderThatIsThereAfterAllHasLeftNoVacancy(t *testing.T) {
	owner := owning(placement.Owners{0: placement.Between(0, 1), 1: placement.Between(2, 3)})
	owner.Record.State.Slots = assignment.Slots{0: "a", 1: "b"}
	owner.Record.State.UIDs = assignment.Slots{0: "ua", 1: "ub"}
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	over := func(v *vacancies) bool {
		v.see(owner, now)
		ids, _ := v.over(30*time.Second, now)
		return ids[0]
	}
	v := &vacancies{}
	v.see(owner, now)
	v.gone(0, "a", "ua", now)
	v.back(1, "b", "ub")
	v.back(0, "a", "another")
	now = now.Add(time.Minute)
	if !over(v) {
		t.Error("nobody misses a pod that is gone")
	}
	v.back(0, "a", "ua")
	now = now.Add(time.Minute)
	if over(v) {
		t.Error("a pod that is there is missed")
	}
	delete(owner.Record.State.Slots, 0) // it leaves
	if over(v) {
		t.Error("the pod that has just left has been missed for long")
	}
	now = now.Add(time.Minute)
	if !over(v) {
		t.Error("nobody misses the pod that has left")
	}
}
