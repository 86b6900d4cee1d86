package decision

import (
	"errors"
	"testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
)

// A pass does what is due in the order of the steps. What T3 shows may bring the map and the receipts again, and what failed waits for the next pass.
func TestAPassDoesTheFirstStepThatIsDue(t *testing.T) {
	all := Decision{
		List: true, Plan: proposal.Decision{Next: &assignment.State{}}, Take: []Take{{}}, Confirm: true, Publish: []Publish{{}}, Probe: []string{"a"},
		Remove: []Removal{{}}, Verify: true,
	}
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		fails Step
		want  []Step
	}{
		"all goes well": {StepNone, []Step{
			StepList, StepMap, StepLock, StepConfirm, StepMap, StepLock, StepConfirm, StepMap, StepLock, StepConfirm, StepMap, StepLock, StepTell, StepProbe, StepVerify,
		}},
		"the map fails":  {StepMap, []Step{StepList, StepMap, StepLock, StepConfirm, StepMap, StepLock, StepConfirm, StepMap, StepLock, StepConfirm, StepMap, StepLock, StepTell, StepProbe, StepVerify}},
		"the list fails": {StepConfirm, []Step{StepList, StepMap, StepLock, StepConfirm, StepTell, StepProbe, StepVerify}},
	} {
		done := Steps{}
		for i, want := range c.want {
			step := all.First(done)
			if step != want {
				t.Fatalf("%s: step %d is %d, want %d", name, i, step, want)
			}
			var err error
			if step == c.fails {
				err = failed
			}
			done.Did(step, err)
		}
		if step := all.First(done); step != StepNone {
			t.Errorf("%s: after all steps comes %d", name, step)
		}
	}
	all.Verify = false
	if step := all.First(Steps{StepList: 1, StepMap: 1, StepLock: 1, StepConfirm: mostLists, StepTell: 1, StepProbe: 1}); step != StepRemove {
		t.Errorf("on what was verified comes step %d", step)
	}
}
