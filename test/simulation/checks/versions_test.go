package checks

import (
	"testing"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/profile"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// later has somebody write the map with a seal of a later format.
func (s stage) later(manager string) {
	s.ChangeOwner(server.Writer{Manager: manager}, func(o object.Object) {
		object.SetText(o, "annotations", assignment.DefaultKey, `{"0":"a"}`)
		object.SetText(o, "annotations", assignment.SealKey, "2:5:0123456789abcdef01234567")
	})
}

func TestAWriteOnAMapThatTheProcessCannotReadIsReported(t *testing.T) {
	for name, tc := range map[string]struct {
		writer string
		by     bool // a process writes after that, not somebody else
		want   string
	}{
		"of a newer idalloc":                    {writer: assignment.FieldManager, by: true, want: versions},
		"of a newer idalloc, by somebody else":  {writer: assignment.FieldManager},
		"that somebody else brought back again": {writer: "kubectl-rollout", by: true},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, profile.Profile{}, func(s stage) {
				s.Programs[7] = world.Program{Newer: true}
				a := s.Puppet("a")
				s.later(tc.writer)
				if tc.by {
					s.epoch(a, 9)
				} else {
					s.epoch(nil, 9)
				}
				s.expect(t, tc.want)
			})
		})
	}
}
