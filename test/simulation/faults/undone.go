package faults

import (
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// byHand and annotate are the field managers of a person who edits or annotates an object.
const byHand, annotate = "kubectl-edit", "kubectl-annotate"

// undoing has another client undo each write of idalloc on the owner for a while: of all its keys, or of one.
func undoing(w *world.World, f Fault, d *dice.Dice) {
	w.Undoes = dice.Pick(d, [][]string{assignment.Keys(), {assignment.Key}, {assignment.HandoverKey}, {assignment.HandoverKey}, {assignment.PartitionOwnersKey}})
	if d.Chance(0.6) {
		stir(w, f, d)
	}
	w.After(f.Lasts, func() { w.Undoes = nil })
}

// oneNumber has a Deployment be deleted and made again with another template, while its ReplicaSet stays for a while: both say that theirs is
// revision 1, as long as it was the first.
func oneNumber(w *world.World, f Fault, _ *dice.Dice) {
	v := w.Owner()
	if v == nil || w.Uncollected {
		return
	}
	n, version := v.Count(), world.Template(v.Object)
	w.Uncollected = true
	w.DeleteOwner(false)
	w.CreateOwner(n, version+1)
	w.After(f.Lasts, func() { w.Uncollected = false })
}

// forge has another client write what idalloc proposes: it stops no work and keeps no pod from it.
func forge(w *world.World, _ Fault, d *dice.Dice) { Forge(w, d) }

// Forge writes a row or a request that no planner would write. All of it is idalloc's to repair.
func Forge(w *world.World, d *dice.Dice) {
	v := w.Owner()
	if v == nil {
		return
	}
	if row := world.Read(v).State.Row; row != nil && d.Chance(0.5) {
		forgeRow(w, row, d)
		return
	}
	request := assignment.Slots{}
	names := []string{"not-there"}
	for _, pod := range w.Server.Objects(object.Pods) {
		names = append(names, pod.Name)
	}
	for id := range v.Count() + 1 {
		if d.Chance(0.6) {
			name := dice.Pick(d, names)
			if _, asks := request.Of(name); !asks {
				request[id] = name
			}
		}
	}
	w.ChangeOwner(server.Writer{Manager: byHand}, func(o object.Object) { object.SetText(o, "annotations", assignment.HandoverKey, request.Encode()) })
}

// forgeRow says that there are no partitions, or other ones, or that they are others'.
func forgeRow(w *world.World, row *assignment.Row, d *dice.Dice) {
	switch ids := row.Owners.IDs(); d.Below(3) {
	case 0:
		row.Count = 0
	case 1:
		row.Count, row.Owners = 0, placement.Owners{}
	default:
		if len(ids) > 0 {
			a, b := dice.Pick(d, ids), dice.Pick(d, ids)
			row.Owners[a], row.Owners[b] = row.Owners[b], row.Owners[a]
		}
	}
	w.ChangeOwner(server.Writer{Manager: byHand}, func(o object.Object) { object.SetText(o, "annotations", assignment.PartitionOwnersKey, row.Encode()) })
}

// ForgeQuietly forges what is to stop no work of a settled workload: a row without partitions, and requests of pods that need no slot, that have
// failed or that do not exist.
func ForgeQuietly(w *world.World, d *dice.Dice) {
	v := w.Owner()
	if v == nil {
		return
	}
	w.Step("forge")
	if row := world.Read(v).State.Row; row != nil {
		row.Count = 0
		w.ChangeOwner(server.Writer{Manager: byHand}, func(o object.Object) { object.SetText(o, "annotations", assignment.PartitionOwnersKey, row.Encode()) })
	}
	failed := failedPod(w)
	w.After(d.Span(0, 30*time.Second), func() {
		slots := world.Slots(w.Owner())
		request := assignment.Slots{}
		for id := range slots {
			asks := dice.Pick(d, []string{slots[(id+1)%len(slots)], slots[id], failed, failed, "not-there"})
			if _, twice := request.Of(asks); !twice && asks != "" {
				request[id] = asks
			}
		}
		w.ChangeOwner(server.Writer{Manager: byHand}, func(o object.Object) { object.SetText(o, "annotations", assignment.HandoverKey, request.Encode()) })
	})
}

// failedPod makes a pod like one of the owner's that has failed, and returns its name.
func failedPod(w *world.World) string {
	for _, v := range w.Server.Objects(object.Pods) {
		if object.Ended(v.Object) || object.Terminating(v.Object) {
			continue
		}
		next := object.Clone(v.Object)
		meta := object.Need(next, object.Metadata)
		for _, field := range []string{"uid", "resourceVersion", "generation", "annotations"} {
			delete(meta, field)
		}
		meta["name"] = v.Name + "-failed"
		object.SetText(next, "labels", receipt.IDLabel, "")
		object.SetText(next, "labels", receipt.OwnerLabel, "")
		next["status"] = object.Object{"phase": object.Failed, "ready": "False"}
		return w.Server.Put(v.Kind, next, server.Writer{Manager: "kubelet"}).Name
	}
	return ""
}

// changeLeases has an admission webhook change Leases for a while: it caps or drops their time, names another holder, or drops what they lock.
func changeLeases(w *world.World, f Fault, d *dice.Dice) {
	how := d.Below(5)
	w.Server.MutatesLease = func(next object.Object) {
		spec := object.Need(next, "spec")
		switch how {
		case 0:
			spec["leaseDurationSeconds"] = int64(1)
		case 1:
			spec["leaseDurationSeconds"] = min(int64(object.Number(next, "spec", "leaseDurationSeconds")), 5)
		case 2:
			delete(spec, "leaseDurationSeconds")
		case 3:
			if spec["holderIdentity"] != nil {
				spec["holderIdentity"] = "webhook/00000000-0000-4000-8000-000000000000"
			}
		default:
			delete(spec, "holderIdentity")
		}
	}
	w.After(f.Lasts, func() { w.Server.MutatesLease = nil })
}
