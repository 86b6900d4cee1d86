package checks

import "testing"

// The partitions of a history fit an order only if nobody works on one beside another, and if tokens rise.
func TestWorkOnAPartitionHasAnOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		second  []int
		token   int64
		promise string
	}{
		"another one, later":            {[]int{2, 3}, 6, ""},
		"with the token of the first":   {[]int{2, 3}, 5, linear},
		"while the first works on both": {[]int{1, 2}, 6, linear},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, divided(), func(s stage) {
				a, b := s.Puppet("a"), s.Puppet("b")
				s.work(a, 0, 0, 1, 2)
				s.work(a, 0, 0, 1)
				b.WorkOn(map[int]int64{tc.second[0]: tc.token, tc.second[1]: tc.token})
				s.act(b, 1, tc.token)
				s.judge.Decide()
				found := false
				for _, v := range s.judge.Violations() {
					found = found || v.Promise == linear
				}
				if found != (tc.promise == linear) {
					t.Errorf("violations: %v", s.judge.Violations())
				}
			})
		})
	}
}
