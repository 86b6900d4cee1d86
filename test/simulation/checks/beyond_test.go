package checks

import (
	"testing"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/profile"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// writes has a process write the receipt of its pod.
func (s stage) writes(p *world.Process, r assignment.Receipt) {
	s.Serving = p
	defer func() { s.Serving = nil }()
	s.Server.Change(object.Pods, p.Pod, server.Writer{Manager: assignment.FieldManager}, func(o object.Object) {
		r.UID, r.Owner = p.UID, "ReplicaSet/"+world.OwnerName
		object.SetText(o, "annotations", assignment.ReceiptKey, r.Encode())
	})
}

// restores has a process write the owner's map after somebody damaged it.
func (s stage) restores(by *world.Process, id int, holder *world.Process) {
	state := assignment.State{Epoch: 9, Slots: map[int]string{id: holder.Pod}, UIDs: map[int]string{id: assignment.ShortUID(holder.UID)}}
	s.Serving = by
	defer func() { s.Serving = nil }()
	s.ChangeOwner(server.Writer{Manager: assignment.FieldManager}, func(o object.Object) {
		for key, value := range state.Encode(assignment.DefaultKey, object.UID(o)) {
			object.SetText(o, "annotations", key, value)
		}
	})
}

// A write that takes the entry of a pod out may be under way when the pod's next process, which finds no receipt, takes the slot again.
func TestTheNextProcessOfAPodWhoseGivingSomebodyForgotIsExcused(t *testing.T) {
	for name, tc := range map[string]struct {
		written, knows bool // the owner, after the receipt was removed; the process itself
		removes        bool
		promise        string
	}{
		"the next process":              {removes: true},
		"the receipt is there":          {promise: exclusion},
		"idalloc wrote the owner since": {removes: true, written: true, promise: exclusion},
		"the process that gave":         {removes: true, knows: true, promise: exclusion},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, profile.Profile{}, func(s stage) {
				a, b := s.Puppet("a"), s.Puppet("b")
				if tc.knows {
					a.Calls = 1
				}
				s.writes(a, assignment.Receipt{GaveUp: true})
				if tc.removes {
					s.Server.Change(object.Pods, a.Pod, server.Writer{Manager: "kubectl"}, func(o object.Object) {
						object.SetText(o, "annotations", assignment.ReceiptKey, "{")
					})
				}
				if tc.written {
					s.epoch(b, 4)
				}
				s.act(a, 0, 5)
				s.act(b, 0, 6)
				s.expect(t, tc.promise)
			})
		})
	}
}

// Nothing but the receipt of a strict pod tells that it acts, if the map is damaged. If the pod is gone, too, a receipt of another pod
// that came late tells a lie, and perhaps nothing tells of its fence-after.
func TestAStrictProcessOfWhichNothingTellsIsExcused(t *testing.T) {
	for name, tc := range map[string]struct {
		token   int64         // of the other pod's receipt
		stays   bool          // the pod that acts
		fence   time.Duration // of the other pod's receipt
		own     bool          // idalloc wrote fence-after on the owner, and nobody else has
		promise string
	}{
		"a late receipt":                {token: 3, fence: 10 * time.Second},
		"a receipt after its token":     {token: 7, fence: 10 * time.Second, promise: exclusion},
		"the pod is there":              {token: 3, fence: 10 * time.Second, stays: true, promise: exclusion},
		"a fence-after that is shorter": {token: 7, fence: 9 * time.Second},
		"fence-after is idalloc's":      {token: 7, own: true, promise: exclusion},
	} {
		t.Run(name, func(t *testing.T) {
			staged(t, profile.Profile{FenceAfter: 10 * time.Second}, func(s stage) {
				a, b := s.Puppet("a"), s.Puppet("b")
				b.FenceAfter = 0
				s.act(a, 0, 5)
				if tc.own {
					s.Serving = a
					s.ChangeOwner(server.Writer{Manager: assignment.FieldManager}, func(o object.Object) {
						object.SetText(o, "annotations", assignment.FenceAfterKey, "10s")
					})
					s.Serving = nil
				}
				if !tc.stays {
					s.Server.Remove(s.Server.Get(object.Pods, a.Pod))
				}
				s.writes(b, assignment.Receipt{ID: 0, Epoch: tc.token, FenceAfter: tc.fence})
				s.restores(b, 0, b)
				s.act(b, 0, 9)
				s.expect(t, tc.promise)
			})
		})
	}
}

func TestAGhostNeedNotRest(t *testing.T) {
	staged(t, profile.Profile{}, func(s stage) {
		ghost := s.Puppet("ghost")
		s.Forsake(s.Server.Get(object.Pods, ghost.Pod))
		s.act(ghost, 0, 1)
		s.judge.Rest()
		s.act(ghost, identity.None, 0)
		s.expect(t, "")
	})
}
