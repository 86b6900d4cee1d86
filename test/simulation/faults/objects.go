package faults

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// foreignWrite has another client change the owner's annotations. Now and then a person runs "idalloc gc" at about the same time, as "idalloc
// verify" advises.
func foreignWrite(how func(o object.Object, d *dice.Dice)) func(*world.World, Fault, *dice.Dice) {
	return func(w *world.World, f Fault, d *dice.Dice) {
		if d.Chance(0.5) {
			w.After(d.Tail(100*time.Millisecond), func() { sweep(w, f, d) })
		}
		w.ChangeOwner(server.Writer{Manager: byHand}, func(o object.Object) { how(o, d) })
	}
}

// wipe removes one of our annotations, all of them, or all annotations.
func wipe(o object.Object, d *dice.Dice) {
	switch d.Below(3) {
	case 0:
		object.SetText(o, "annotations", dice.Pick(d, assignment.Keys()), "")
	case 1:
		for _, key := range assignment.Keys() {
			object.SetText(o, "annotations", key, "")
		}
	default:
		delete(object.Need(o, object.Metadata), "annotations")
	}
}

// edit gives slots to other pods, as a person would who wants to place the pods by hand.
func edit(o object.Object, d *dice.Dice) {
	if object.Annotation(o, assignment.PartitionOwnersKey) != "" && d.Chance(0.5) {
		editRow(o, d)
		return
	}
	slots, err := assignment.ParseSlots(object.Annotation(o, assignment.Key))
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
	object.SetText(o, "annotations", assignment.Key, slots.Encode())
	if d.Chance(0.3) { // and asks for slots
		object.SetText(o, "annotations", assignment.HandoverKey, assignment.Slots{a: slots[b] + dice.Pick(d, []string{"", "x"})}.Encode())
	}
}

// editRow gives partitions to other ids, or changes what is in force.
func editRow(o object.Object, d *dice.Dice) {
	row := assignment.Decode(object.Annotations(o)).State.Row
	if row == nil {
		return
	}
	if ids := row.Owners.IDs(); len(ids) > 0 {
		a, b := dice.Pick(d, ids), dice.Pick(d, ids)
		switch d.Below(3) {
		case 0:
			row.Owners[a], row.Owners[b] = row.Owners[b], row.Owners[a]
		case 1:
			delete(row.Owners, a)
		default:
			row.Owners[d.Between(0, 5)] = row.Owners[a]
			delete(row.Owners, a)
		}
	}
	if d.Chance(0.2) {
		row.Count = d.Between(0, 6)
	}
	object.SetText(o, "annotations", assignment.PartitionOwnersKey, row.Encode())
}

// wish has the user change what he wants of partitions: sometimes to what makes no sense, and sometimes he takes a wish away. He may
// change his mind within the moment that a plan or a take needs, as an autoscaler does that swings.
func wish(w *world.World, d *dice.Dice) {
	key, text := assignment.PartitionCountKey, strconv.Itoa(d.Between(0, 6))
	switch d.Below(5) {
	case 0, 1:
	case 2:
		key, text = assignment.PartitionStrategyKey, dice.Pick(d, append(placement.Names(), "", "zigzag", "Sticky?"))
	case 3:
		key, text = assignment.PartitionCountKey, dice.Pick(d, []string{"", "-1", "many", "99999"})
	default:
		key, text = assignment.PartitionTargetKey, target(d)
	}
	back, was := d.Chance(0.5), ""
	w.ChangeOwner(server.Writer{Manager: annotate}, func(o object.Object) {
		was = object.Annotation(o, key)
		object.SetText(o, "annotations", key, text)
	})
	for at, n := time.Duration(0), d.Between(1, 4); back && n > 0; n-- {
		at += d.Tail(200 * time.Millisecond)
		w.After(at, func() {
			if w.Quiet {
				return
			}
			w.ChangeOwner(server.Writer{Manager: annotate}, func(o object.Object) {
				was, text = text, was
				object.SetText(o, "annotations", key, text)
			})
		})
	}
}

// target is what an autoscaler says: any partitions to any ids, also to ones that do not exist, and now and then one partition to two.
func target(d *dice.Dice) string {
	owners := map[string]string{}
	for k := range d.Between(0, 6) {
		id := strconv.Itoa(d.Between(0, 4))
		if owners[id] != "" {
			owners[id] += ","
		}
		owners[id] += strconv.Itoa(k)
	}
	if d.Chance(0.1) {
		owners["1"], owners["2"] = "3", "3"
	}
	text, _ := json.Marshal(owners) //nolint:errchkjson // strings
	return string(text)
}

func corrupt(o object.Object, d *dice.Dice) {
	object.SetText(o, "annotations", dice.Pick(d, assignment.Keys()), dice.Pick(d, []string{"", "{", "[]", `{"0":1}`, `{"-1":"a"}`, "1e3", "99999999999999999999", `{"0":"a","1":"a"}`, `{"0":".."}`, "1h0m0s"}))
}

// oldAnnotations puts all annotations back as they were a while ago.
func oldAnnotations(w *world.World, _ Fault, d *dice.Dice) {
	v := w.Owner()
	if v == nil {
		return
	}
	putBack(w, object.At(earlier(v, d).Object, object.Metadata, "annotations"))
}

// putBack replaces all annotations of the owner by what they were.
func putBack(w *world.World, was object.Object) {
	w.ChangeOwner(server.Writer{Manager: "kubectl-replace"}, func(o object.Object) {
		if was == nil {
			delete(object.Need(o, object.Metadata), "annotations")
			return
		}
		object.Need(o, object.Metadata)["annotations"] = object.Clone(was)
	})
}

// damage is one of the foreign writes to the owner.
func damage(w *world.World, d *dice.Dice) {
	if !w.Quiet {
		w.Step("damage")
		dice.Pick(d, []func(*world.World, Fault, *dice.Dice){foreignWrite(wipe), foreignWrite(edit), foreignWrite(corrupt), oldAnnotations})(w, Fault{}, d)
	}
}

// recreateOwner deletes the workload. Its pods go, too, by and by, unless they are orphans of a Deployment, which the new one adopts. A restore
// tool may give the new one what a backup of the old one has, also at once, as kubectl replace --force does, while the pods still run.
func recreateOwner(w *world.World, f Fault, d *dice.Dice) {
	v := w.Owner()
	if v == nil {
		return
	}
	backup, orphans := d.Chance(0.5), d.Chance(0.4)
	saved := earlier(v, d)
	gap := f.Lasts
	if d.Chance(0.5) {
		gap = min(gap, d.Tail(500*time.Millisecond))
	}
	n, version := v.Count(), world.Template(v.Object)
	w.DeleteOwner(orphans)
	w.After(gap, func() {
		if w.Owner() == nil {
			w.CreateOwner(n, version)
			if backup {
				putBack(w, object.At(saved.Object, object.Metadata, "annotations"))
			}
		}
	})
}

// splitOwner deletes a Deployment without its pods in mid-rollout, so that each of its ReplicaSets is an owner for a while. Then one is there that adopts all.
func splitOwner(w *world.World, f Fault, d *dice.Dice) {
	rollout(w, f, d)
	w.After(d.Tail(3*time.Second), func() {
		v := w.Owner()
		if v == nil || w.Quiet {
			return
		}
		w.Step("split")
		n, version := v.Count(), world.Template(v.Object)
		w.DeleteOwner(true)
		w.After(f.Lasts, func() {
			if w.Owner() == nil {
				w.CreateOwner(n, version)
			}
		})
	})
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

func removeReceipt(w *world.World, v *server.Version, d *dice.Dice) {
	w.Server.Change(object.Pods, v.Name, server.Writer{Manager: annotate}, func(o object.Object) {
		object.SetText(o, "annotations", receipt.Key, "")
		if d.Chance(0.5) {
			object.SetText(o, "labels", receipt.IDLabel, "")
			object.SetText(o, "labels", receipt.OwnerLabel, "")
		}
	})
}

func corruptReceipt(w *world.World, v *server.Version, d *dice.Dice) {
	w.Server.Change(object.Pods, v.Name, server.Writer{Manager: annotate}, func(o object.Object) {
		if d.Chance(0.5) {
			object.SetText(o, "labels", dice.Pick(d, []string{receipt.IDLabel, receipt.OwnerLabel}), "7")
			return
		}
		object.SetText(o, "annotations", receipt.Key, dice.Pick(d, []string{"{", "null", `{"uid":"x","owner":"y"}`}))
	})
}

// changeProposal removes what the controller tells a pod, damages it, brings back what it told it first, or gives the pod what it tells another one.
func changeProposal(w *world.World, v *server.Version, d *dice.Dice) {
	other, old := dice.Pick(d, w.Server.Objects(object.Pods)), v
	for old.Before.Exists() && object.UID(old.Before.Object) == object.UID(v.Object) && object.Annotation(old.Before.Object, receipt.ProposalKey) != "" {
		old = old.Before
	}
	first := object.Annotation(old.Object, receipt.ProposalKey)
	text := dice.Pick(d, []string{"", "{", "null", first, first, object.Annotation(other.Object, receipt.ProposalKey)})
	w.Server.Change(object.Pods, v.Name, server.Writer{Manager: annotate}, func(o object.Object) {
		object.SetText(o, "annotations", receipt.ProposalKey, text)
	})
}

func takeRBAC(w *world.World, f Fault, d *dice.Dice) {
	what := dice.Pick(d, []string{
		"get " + w.Profile.Resource, "patch " + w.Profile.Resource, "watch " + w.Profile.Resource, "list " + w.Profile.Resource,
		"get pods", "list pods", "watch pods", "patch pods", "get replicasets", "create events", "get leases", "list leases", "create leases", "update leases",
	})
	w.Server.Refusals[what] = true
	w.After(f.Lasts, func() { delete(w.Server.Refusals, what) })
}

func scaleOwner(w *world.World, _ Fault, d *dice.Dice) {
	if w.Profile.Partitions > 0 && d.Chance(0.5) {
		wish(w, d)
		return
	}
	if v := w.Owner(); v != nil {
		w.Scale(v, d.Between(0, 5))
	}
}

func rollout(w *world.World, _ Fault, _ *dice.Dice) {
	w.ChangeOwner(server.Writer{Manager: "kubectl-set"}, func(o object.Object) {
		w.SetTemplate(o, world.Template(o)+1)
	})
}

// undo is kubectl rollout undo: the template and all annotations of the ReplicaSet before.
func undo(w *world.World, _ Fault, d *dice.Dice) {
	v := w.Owner()
	if v == nil {
		return
	}
	_, old, _ := w.Revisions(v)
	if len(old) == 0 {
		return
	}
	rs := dice.Pick(d, old).Object
	w.Server.Change(object.Deployments, world.OwnerName, server.Writer{Manager: "kubectl-rollout"}, func(o object.Object) {
		w.SetTemplate(o, world.Template(rs))
		was := object.Clone(object.At(rs, object.Metadata, "annotations"))
		was[world.RevisionKey] = object.Annotation(o, world.RevisionKey)
		object.Need(o, object.Metadata)["annotations"] = was
	})
}

func deletePod(w *world.World, v *server.Version, _ *dice.Dice) {
	w.Server.DeletePod(v.Name, w.Profile.Grace)
}

// strip has an admission webhook take away, for a while, what idalloc writes: annotations, or the labels of pods.
func strip(w *world.World, f Fault, d *dice.Dice) {
	field, keys := "annotations", append(assignment.Keys(), receipt.Key)
	if d.Chance(0.3) {
		field, keys = "labels", []string{receipt.IDLabel, receipt.OwnerLabel}
	}
	gone := dice.Sample(d, keys, d.Between(1, len(keys)))
	w.Server.Mutates = func(next object.Object) {
		for _, key := range gone {
			object.SetText(next, field, key, "")
		}
	}
	w.After(f.Lasts, func() { w.Server.Mutates = nil })
}

// pausePod has a person pause a pod's work on partitions for a while.
func pausePod(w *world.World, f Fault, d *dice.Dice) {
	v := somePod(w, d)
	if v == nil {
		return
	}
	w.Pause(v.Name, true)
	w.After(f.Lasts, func() { w.Pause(v.Name, false) })
}

// collectSlots has a person run "idalloc gc", once or, as a CronJob does, again and again: a process without a pod, whose requests fare
// like all others.
func collectSlots(w *world.World, f Fault, d *dice.Dice) {
	at := time.Duration(0)
	for range d.Between(1, 8) {
		w.After(at, func() { sweep(w, f, d) })
		at += d.Tail(5 * time.Second)
	}
}

func sweep(w *world.World, f Fault, d *dice.Dice) {
	w.Sweep("gc-"+strconv.FormatUint(f.Draw, 36)+"-"+strconv.FormatUint(d.Next(), 36), dice.Pick(d, w.Nodes))
}

// neverStart has some of the pods that are made meanwhile not start at all, until an operator repairs them in the end: no node has room for them,
// or a volume does not exist.
func neverStart(w *world.World, f Fault, d *dice.Dice) {
	w.Stuck = 0.3 + 0.7*d.Float()
	if w.Profile.Rolls() && d.Chance(0.7) {
		rollout(w, f, d)
	}
	w.After(f.Lasts, func() { w.Stuck = 0 })
}

// brokenRollout begins a revision whose programs end by themselves soon after they got an id, until an operator repairs what they need.
func brokenRollout(w *world.World, f Fault, d *dice.Dice) {
	rollout(w, f, d)
	if v := w.Owner(); v != nil {
		w.Broken[world.Template(v.Object)] = true
	}
}
