package simulation

import (
	"strconv"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// ours are the annotation keys of the owner that idalloc keeps.
func ours() []string { return assignment.Keys(assignment.DefaultKey) }

func foreignWrite(how func(o object.Object, d *dice.Dice)) func(*world, Fault, *dice.Dice) {
	return func(w *world, _ Fault, d *dice.Dice) {
		w.server.Change(w.profile.Resource, ownerName, server.Writer{Manager: "kubectl-edit"}, func(o object.Object) { how(o, d) })
	}
}

// wipe removes one of our annotations, all of them, or all annotations.
func wipe(o object.Object, d *dice.Dice) {
	switch d.Below(3) {
	case 0:
		object.SetText(o, "annotations", dice.Pick(d, ours()), "")
	case 1:
		for _, key := range ours() {
			object.SetText(o, "annotations", key, "")
		}
	default:
		delete(object.Need(o, object.Metadata), "annotations")
	}
}

// edit gives slots to other pods, as somebody would who thinks that he knows better.
func edit(o object.Object, d *dice.Dice) {
	slots, err := assignment.ParseSlots(object.Annotation(o, assignment.DefaultKey))
	if err != nil || len(slots) == 0 {
		return
	}
	ids := slots.IDs()
	a, b := dice.Pick(d, ids), dice.Pick(d, ids)
	switch d.Below(3) {
	case 0:
		slots[a], slots[b] = slots[b], slots[a]
	case 1:
		delete(slots, a)
	default:
		slots[a] = slots[b] + "x"
	}
	object.SetText(o, "annotations", assignment.DefaultKey, slots.Encode())
	if d.Chance(0.5) { // he knows about the seal, too
		object.SetText(o, "annotations", assignment.SealKey, assignment.Seal(object.Annotations(o), assignment.DefaultKey, object.UID(o)))
	}
}

func corrupt(o object.Object, d *dice.Dice) {
	object.SetText(o, "annotations", dice.Pick(d, ours()), dice.Pick(d, []string{"", "{", "[]", `{"0":1}`, `{"-1":"a"}`, "1e3", "99999999999999999999", `{"0":"a","1":"a"}`, `{"0":".."}`, "1h0m0s"}))
}

// oldAnnotations puts all annotations back as they were a while ago.
func oldAnnotations(w *world, _ Fault, d *dice.Dice) {
	v := w.owner()
	if v == nil {
		return
	}
	w.putBack(object.At(earlier(v, d).Object, object.Metadata, "annotations"))
}

// putBack replaces all annotations of the owner by what they were.
func (w *world) putBack(was object.Object) {
	w.server.Change(w.profile.Resource, ownerName, server.Writer{Manager: "kubectl-replace"}, func(o object.Object) {
		if was == nil {
			delete(object.Need(o, object.Metadata), "annotations")
			return
		}
		object.Need(o, object.Metadata)["annotations"] = object.Clone(was)
	})
}

// damage is one of the foreign writes to the owner.
func (w *world) damage(d *dice.Dice) {
	if !w.quiet {
		w.Step("damage")
		dice.Pick(d, []func(*world, Fault, *dice.Dice){foreignWrite(wipe), foreignWrite(edit), foreignWrite(corrupt), oldAnnotations})(w, Fault{}, d)
	}
}

func clearFields(w *world, _ Fault, _ *dice.Dice) {
	w.server.Change(w.profile.Resource, ownerName, server.Writer{Manager: "kubectl-patch"}, func(o object.Object) { object.Need(o, object.Metadata)["managedFields"] = []any{} })
}

// applyOwner is somebody's server-side apply of a label-like annotation: it starts tracking again.
func (w *world) applyOwner() {
	applied := strconv.Itoa(w.nextNumber())
	w.server.Change(w.profile.Resource, ownerName, server.Writer{Manager: "argocd", Apply: true}, func(o object.Object) {
		object.SetText(o, "annotations", "example.com/applied", applied)
	})
}

// manyManagers: so many others write annotations of their own that the server forgets who wrote idalloc's. The first of them may bring old
// ones back.
func manyManagers(w *world, f Fault, d *dice.Dice) {
	n, lasts := d.Between(server.MaxManagers/2, 3*server.MaxManagers), f.Lasts
	if d.Chance(0.5) { // one tool after the other, as when somebody restores a namespace
		lasts = min(lasts, time.Second)
	}
	if v := w.owner(); v != nil && d.Chance(0.4) {
		w.putBack(object.At(earlier(v, d).Object, object.Metadata, "annotations"))
	}
	for i := range n {
		w.After(lasts*time.Duration(i)/time.Duration(n), func() {
			name := strconv.Itoa(i)
			w.server.Change(w.profile.Resource, ownerName, server.Writer{Manager: "tool-" + name}, func(o object.Object) {
				object.SetText(o, "annotations", "example.com/tool-"+name, strconv.Itoa(w.steps))
			})
		})
	}
}

// recreateOwner deletes the workload, its pods left alone (cascade=orphan is not simulated: they go too, by and by). A restore
// tool may give the new one what a backup of the old one has.
func recreateOwner(w *world, f Fault, d *dice.Dice) {
	v := w.owner()
	if v == nil {
		return
	}
	backup := d.Chance(0.5)
	saved := earlier(v, d)
	n, version := object.Number(v.Object, "spec", v.Kind.Count), template(v.Object)
	w.server.Remove(v)
	w.After(f.Lasts, func() {
		if w.owner() == nil {
			w.createOwner(n, version)
			if backup {
				w.restore(saved)
			}
		}
	})
}

// restore gives the owner an earlier one's annotations, and then its managedFields.
func (w *world) restore(saved *server.Version) {
	w.putBack(object.At(saved.Object, object.Metadata, "annotations"))
	w.server.Change(w.profile.Resource, ownerName, server.Writer{Manager: "velero", Fields: &saved.Managers}, func(object.Object) {})
}

// earlier returns v or what it was a while ago.
func earlier(v *server.Version, d *dice.Dice) *server.Version {
	for range d.Between(1, 12) {
		if v.Before.Exists() {
			v = v.Before
		}
	}
	return v
}

func removeReceipt(w *world, _ Fault, d *dice.Dice) {
	if v := w.somePod(d); v != nil {
		w.server.Change(object.Pods, v.Name, server.Writer{Manager: "kubectl-annotate"}, func(o object.Object) {
			object.SetText(o, "annotations", assignment.ReceiptKey, "")
			if d.Chance(0.5) {
				object.SetText(o, "labels", assignment.InstanceIDLabel, "")
				object.SetText(o, "labels", assignment.OwnerLabel, "")
			}
		})
	}
}

func corruptReceipt(w *world, _ Fault, d *dice.Dice) {
	if v := w.somePod(d); v != nil {
		w.server.Change(object.Pods, v.Name, server.Writer{Manager: "kubectl-annotate"}, func(o object.Object) {
			if d.Chance(0.3) {
				object.SetText(o, "labels", dice.Pick(d, []string{assignment.InstanceIDLabel, assignment.OwnerLabel}), "7")
				return
			}
			object.SetText(o, "annotations", assignment.ReceiptKey, dice.Pick(d, []string{"{", "null", `{"uid":"x","owner":"y"}`}))
		})
	}
}

func takeRBAC(w *world, f Fault, d *dice.Dice) {
	what := dice.Pick(d, []string{
		"get " + w.profile.Resource, "patch " + w.profile.Resource, "watch " + w.profile.Resource, "list " + w.profile.Resource,
		"get pods", "list pods", "watch pods", "patch pods", "get replicasets", "create events",
	})
	w.server.Refusals[what] = true
	w.After(f.Lasts, func() { delete(w.server.Refusals, what) })
}

func takeQuota(w *world, f Fault, _ *dice.Dice) {
	w.quota = true
	w.After(f.Lasts, func() { w.quota = false })
}

func refuseAdmission(w *world, f Fault, _ *dice.Dice) {
	w.server.Admission = true
	w.After(f.Lasts, func() { w.server.Admission = false })
}

func scaleOwner(w *world, _ Fault, d *dice.Dice) {
	if v := w.owner(); v != nil {
		w.scale(v, d.Between(0, 5))
	}
}

func rollout(w *world, _ Fault, _ *dice.Dice) {
	w.server.Change(w.profile.Resource, ownerName, server.Writer{Manager: "kubectl-set"}, func(o object.Object) {
		object.Need(o, "spec", "template")["version"] = int64(template(o) + 1)
	})
}

// undo is kubectl rollout undo: the template and all annotations of the ReplicaSet before.
func undo(w *world, _ Fault, d *dice.Dice) {
	v := w.owner()
	if v == nil {
		return
	}
	_, old, _ := w.revisions(v)
	if len(old) == 0 {
		return
	}
	rs := dice.Pick(d, old).Object
	w.server.Change(object.Deployments, ownerName, server.Writer{Manager: "kubectl-rollout"}, func(o object.Object) {
		object.Need(o, "spec", "template")["version"] = int64(template(rs))
		was := object.Clone(object.At(rs, object.Metadata, "annotations"))
		was[revisionKey] = object.Annotation(o, revisionKey)
		object.Need(o, object.Metadata)["annotations"] = was
	})
}

func deleteSome(w *world, _ Fault, d *dice.Dice) {
	if v := w.somePod(d); v != nil {
		w.server.DeletePod(v.Name, w.profile.Grace)
	}
}

func evictSome(w *world, _ Fault, d *dice.Dice) {
	if v := w.somePod(d); v != nil {
		w.evict(v.Name)
	}
}
