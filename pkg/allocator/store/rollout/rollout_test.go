package rollout

import "testing"

// An update that blocks needs hand-overs: it starts new pods, and ends no old one until one of them is Ready.
func TestWhichUpdatesBlock(t *testing.T) {
	for name, tc := range map[string]struct {
		rollout View
		want    bool
	}{
		"new pods first":       {View{MaxSurge: 1}, true},
		"an old pod first":     {View{MaxSurge: 1, MaxUnavailable: 1}, false},
		"all old pods first":   {View{Recreate: true}, false},
		"whichever comes next": {View{MaxSurge: 2, MaxUnavailable: 2}, false},
	} {
		if got := tc.rollout.Blocks(); got != tc.want {
			t.Errorf("%s: it blocks: %t", name, got)
		}
	}
}
