package proposal

import "testing"

// A plan allocates for its maps and lists, not for each pod: one allocation for each would be a thousand here.
func TestAPlanAllocatesLittle(t *testing.T) {
	const pods = 1000
	for name, tc := range map[string]struct {
		in   Input
		most float64
	}{
		"claim": {claimInput(pods), 100}, "idle": {idleInput(pods), 80}, "replace": {replaceInput(pods), 120},
		"restore": {restoreInput(pods), 100}, "handover": {handoverInput(pods), 200},
	} {
		t.Run(name, func(t *testing.T) {
			if got := testing.AllocsPerRun(5, func() { Plan(tc.in) }); got > tc.most {
				t.Errorf("a plan for %d pods makes %.0f allocations, more than %.0f", pods, got, tc.most)
			}
		})
	}
}
