package simulation

import (
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// windowed changes the network for a while. Where two windows meet, the later one has it.
func windowed(change func(*network, *dice.Dice)) func(*world, Fault, *dice.Dice) {
	return func(w *world, f Fault, d *dice.Dice) {
		before := w.net
		change(&w.net, d)
		w.After(f.Lasts, func() {
			if !w.quiet {
				w.net = before
			}
		})
	}
}

func (w *world) endWatches(d *dice.Dice, expire bool) {
	for _, st := range w.server.Streams() {
		switch {
		case d.Chance(0.5):
		case expire:
			st.Expire()
		default:
			st.End(dice.Pick(d, []error{nil, server.ErrCut}))
		}
	}
	if expire {
		w.server.Compact()
	}
}

func serverDown(w *world, f Fault, _ *dice.Dice) {
	w.down = true
	for _, st := range w.server.Streams() {
		st.End(server.ErrCut)
	}
	w.After(f.Lasts, func() { w.down = false })
}

func partition(w *world, f Fault, d *dice.Dice) {
	n := dice.Pick(d, w.nodes)
	n.cut = true
	breaks := d.Chance(0.5)
	w.After(f.Lasts, func() { w.join(n, breaks) })
}

// some picks running processes: fewer than half, or more.
func some(w *world, d *dice.Dice, major bool) []*process {
	running := w.running()
	if len(running) == 0 {
		return nil
	}
	n := 1
	if major {
		n = d.Between(len(running)/2+1, len(running))
	}
	return dice.Sample(d, running, n)
}

func killSome(w *world, d *dice.Dice, major bool) {
	for _, p := range some(w, d, major) {
		w.kill(p)
	}
}

// killFirst kills whoever acts under id 0.
func killFirst(w *world, _ *dice.Dice) {
	if p := w.first(); p != nil {
		w.kill(p)
	}
}

func (w *world) first() *process {
	for _, p := range w.running() {
		if b := p.belief(); b != nil && b.ID == 0 {
			return p
		}
	}
	return nil
}

func nodeCrash(w *world, f Fault, d *dice.Dice) {
	n := dice.Pick(d, w.nodes)
	w.crash(n)
	w.After(f.Lasts, func() {
		n.down = false
		w.syncNode(n)
	})
}

func suspendSome(w *world, f Fault, d *dice.Dice, major bool) {
	for _, p := range some(w, d, major) {
		w.suspend(p, time.Duration(float64(f.Lasts)*(0.5+d.Float()/2)))
	}
}

func suspendFirst(w *world, f Fault, _ *dice.Dice) {
	if p := w.first(); p != nil {
		w.suspend(p, f.Lasts)
	}
}

func suspendNode(w *world, f Fault, d *dice.Dice) {
	n := dice.Pick(d, w.nodes)
	w.suspendNode(n)
	w.After(f.Lasts, func() { w.resumeNode(n) })
}

// kubeletDown: nobody starts or ends anything on a node, whose processes go on.
func kubeletDown(w *world, f Fault, d *dice.Dice) {
	n := dice.Pick(d, w.nodes)
	n.mute = true
	w.After(f.Lasts, func() {
		n.mute = false
		w.syncNode(n)
	})
}

// somePod picks a pod of the owner: where somebody is held up, often that one's.
func (w *world) somePod(d *dice.Dice) *server.Version {
	all := w.server.Objects(object.Pods)
	if held := w.heldUpNow(); len(held) > 0 && d.Chance(0.5) {
		if v := w.server.Get(object.Pods, dice.Pick(d, held).pod); v != nil {
			return v
		}
	}
	if len(all) == 0 {
		return nil
	}
	return dice.Pick(d, all)
}

func forceDelete(w *world, _ Fault, d *dice.Dice) {
	if v := w.somePod(d); v != nil {
		w.server.Remove(v)
	}
}

// deleteNode removes a Node object while its machine is cut off; the pod garbage collector removes its pods.
func deleteNode(w *world, f Fault, d *dice.Dice) {
	n := dice.Pick(d, w.nodes)
	n.cut = true
	w.After(d.Span(0, f.Lasts/2+1), func() {
		for _, v := range w.server.Objects(object.Pods) {
			if object.Text(v.Object, "spec", "nodeName") != n.name {
				continue
			}
			w.server.Change(object.Pods, v.Name, server.Writer{Manager: manager, Status: true}, func(o object.Object) {
				status := object.Need(o, "status")
				status["phase"] = object.Failed
				status["conditions"] = []any{object.Object{"type": "DisruptionTarget", "reason": "DeletionByPodGC", "status": "True"}}
			})
			w.forsake(v)
		}
		w.After(d.Span(0, 5*time.Second), func() {
			for _, v := range w.server.Objects(object.Pods) {
				if object.Text(v.Object, "spec", "nodeName") == n.name && object.Text(v.Object, "status", "phase") == object.Failed {
					w.server.Remove(v)
				}
			}
		})
	})
	w.After(f.Lasts, func() { w.join(n, true) })
}

// declareFailed: somebody who has no word of the kubelet's declares a pod Failed, whose machine is cut off.
func declareFailed(w *world, f Fault, d *dice.Dice) {
	v := w.somePod(d)
	if v == nil {
		return
	}
	k := w.pods[podKey(v.Name, object.UID(v.Object))]
	if k == nil || k.gone || object.Text(v.Object, "spec", "nodeName") == "" {
		return
	}
	k.node.cut = true
	w.After(d.Span(0, f.Lasts/2+1), func() {
		if now := w.server.Get(object.Pods, v.Name); now == nil || object.UID(now.Object) != k.uid {
			return
		}
		w.server.Change(object.Pods, v.Name, server.Writer{Manager: manager, Status: true}, func(o object.Object) {
			status := object.Need(o, "status")
			status["phase"] = object.Failed
			switch d.Below(3) {
			case 0: // as a pod that is rejected
				delete(status, "containerStatuses")
			case 1:
				status["containerStatuses"] = containerStatus("terminated", "ContainerStatusUnknown")
			}
		})
		w.forsake(v)
	})
	w.After(f.Lasts, func() { w.join(k.node, true) })
}

func relabel(w *world, _ Fault, d *dice.Dice) {
	if v := w.somePod(d); v != nil {
		w.relabel(v.Name)
	}
}

// hide takes away one of the labels by which a relabelled pod is found, or both, until it restores them.
func hide(w *world, _ Fault, d *dice.Dice) {
	if v := w.somePod(d); v != nil {
		w.relabel(v.Name)
		gone := dice.Pick(d, [][]string{{assignment.InstanceIDLabel}, {assignment.OwnerLabel}, {assignment.InstanceIDLabel, assignment.OwnerLabel}})
		w.server.Change(object.Pods, v.Name, server.Writer{Manager: "kubectl-label"}, func(o object.Object) {
			for _, label := range gone {
				object.SetText(o, "labels", label, "")
			}
		})
	}
}

// replacePod is kubectl replace --force: another pod under the same name, while the first one's processes may run on. What restores
// a backup brings its annotations back, too.
func replacePod(w *world, _ Fault, d *dice.Dice) {
	v := w.somePod(d)
	if v == nil {
		return
	}
	next := object.Clone(v.Object)
	meta := object.Need(next, object.Metadata)
	for _, field := range []string{"uid", "resourceVersion", "generation", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		delete(meta, field)
	}
	if d.Chance(0.7) {
		delete(meta, "annotations")
		delete(object.At(next, object.Metadata, "labels"), assignment.InstanceIDLabel)
		delete(object.At(next, object.Metadata, "labels"), assignment.OwnerLabel)
	}
	delete(object.At(next, "spec"), "nodeName")
	next["status"] = object.Object{"phase": "Pending", "ready": "False"}
	w.server.Remove(v)
	w.After(d.Tail(50*time.Millisecond), func() {
		if !w.quiet && w.server.Get(object.Pods, v.Name) == nil { // or nobody would take the pod too many away
			w.server.Put(object.KindOf(object.Pods), next, server.Writer{Manager: "kubectl-replace"})
		}
	})
}
