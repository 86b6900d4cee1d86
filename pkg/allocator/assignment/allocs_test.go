package assignment

import "testing"

// Reading and writing an assignment allocates for its maps and texts, not for its entries: one
// allocation for each would be a thousand here.
func TestCodecAllocatesLittle(t *testing.T) {
	const pods = 1000
	s := benchState(pods)
	annotations := s.Encode()
	for name, tc := range map[string]struct {
		most float64
		do   func()
	}{
		"decode": {80, func() { Decode(annotations) }},
		"encode": {60, func() { s.Encode() }},
	} {
		t.Run(name, func(t *testing.T) {
			if got := testing.AllocsPerRun(5, tc.do); got > tc.most {
				t.Errorf("%s of %d pods makes %.0f allocations, more than %.0f", name, pods, got, tc.most)
			}
		})
	}
}
