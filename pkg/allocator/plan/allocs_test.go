package plan

import "testing"

// The number of allocations grows with the size of maps and slices, not with pods: one for each would
// be a thousand here. Measured: 35 to 95.
func TestPlanAllocatesLittle(t *testing.T) {
	const pods, most = 1000, 200
	for _, w := range workloads {
		t.Run(w.name, func(t *testing.T) {
			in := w.build(pods)
			if got := testing.AllocsPerRun(5, func() { Plan(in) }); got > most {
				t.Errorf("Plan for %d pods makes %.0f allocations, more than %d", pods, got, most)
			}
		})
	}
}
