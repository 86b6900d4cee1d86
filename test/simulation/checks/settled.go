package checks

import (
	"fmt"
	"slices"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// Settled returns what the workload lacks, or an empty string if it is as it should be.
func (j *Judge) Settled() string {
	owner := j.w.Server.Get(j.w.Profile.Resource, world.OwnerName)
	if owner == nil {
		return "the owner does not exist"
	}
	n := owner.Count()
	holders := map[int]string{}
	acting, above := 0, 0
	for _, p := range j.w.Processes {
		if b := p.Belief(); b != nil {
			acting++
			holders[b.ID] = p.ID
			if !p.Runs() || !p.Launched {
				return p.ID + " does not run beside its work" // its next process tells the work another token
			}
			if j.staysAbove(p, b.ID, n) {
				above++
				continue
			}
			if b.Count != n && !j.w.Profile.Keeps {
				return fmt.Sprintf("%s believes in count %d of %d", p.ID, b.Count, n)
			}
		}
	}
	if missing := j.idle(holders, n, above); missing != "" {
		return missing
	}
	if acting != n {
		return fmt.Sprintf("%d act for count %d", acting, n)
	}
	if missing := j.unsaid(owner); missing != "" {
		return missing
	}
	for _, v := range j.w.Server.Objects(object.Pods) {
		if j.w.Profile.Rolls() && world.MadeFrom(v) != world.Template(owner.Object) {
			return v.Name + " is of an older revision"
		}
	}
	if live := j.w.LivePods(); live != n {
		return fmt.Sprintf("%d pods live for count %d", live, n)
	}
	for _, pod := range j.w.Server.Objects(object.Pods) {
		if !j.w.Belongs(pod, owner) {
			return pod.Name + " belongs to an owner that is gone"
		}
	}
	return j.partitionsMissing(owner)
}

// idle names an id below n that no pod acts under, empty if there is none. Those that stay above the count fill places.
func (j *Judge) idle(holders map[int]string, n, above int) string {
	for id := range n {
		switch {
		case holders[id] != "":
		case above > 0:
			above--
		default:
			return fmt.Sprintf("no pod acts under id %d of %d (%d act, %d pods live)", id, n, len(holders), j.w.LivePods())
		}
	}
	return ""
}

// unsaid returns what map and receipts lack about the pods that act, or an empty string.
func (j *Judge) unsaid(owner *server.Version) string {
	record := world.Read(owner)
	for id, name := range record.State.Handover {
		if pod := j.w.Server.Get(object.Pods, name); pod != nil && (j.handsOver(id) || j.receipt(pod).State != receipt.Locks) {
			return fmt.Sprintf("%s asks for slot %d", name, id)
		}
	}
	for _, p := range j.w.Processes {
		b := p.Belief()
		if b == nil {
			continue
		}
		pod := j.w.Server.Get(object.Pods, p.Pod)
		if name := record.State.Slots[b.ID]; name != p.Pod {
			return fmt.Sprintf("%s acts under id %d, and the map gives it to %q", p.ID, b.ID, name)
		}
		if pod == nil || !shows(pod) || !j.kept(pod).LocksSlot(b.ID) {
			return fmt.Sprintf("%s acts under id %d, and no receipt says so", p.ID, b.ID)
		}
	}
	return ""
}

// handsOver reports whether a pod with the slot looks at requests for it. Where none does, the request of a pod that has a slot by now goes with
// another pod's next write.
func (j *Judge) handsOver(id int) bool {
	return slices.ContainsFunc(j.lockers(id), func(pod *server.Version) bool { return j.receipt(pod).HandsOver })
}
