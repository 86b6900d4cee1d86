package store

import "testing"

// An update that blocks needs hand-overs: it starts new pods, and ends no old one until one of them is Ready.
func TestWhichUpdatesBlock(t *testing.T) {
	for name, tc := range map[string]struct {
		rollout Rollout
		want    bool
	}{
		"new pods first":       {Rollout{MaxSurge: 1}, true},
		"an old pod first":     {Rollout{MaxSurge: 1, MaxUnavailable: 1}, false},
		"all old pods first":   {Rollout{Recreate: true}, false},
		"whichever comes next": {Rollout{MaxSurge: 2, MaxUnavailable: 2}, false},
	} {
		if got := tc.rollout.Blocks(); got != tc.want {
			t.Errorf("%s: it blocks: %t", name, got)
		}
	}
}
