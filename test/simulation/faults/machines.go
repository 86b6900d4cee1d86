package faults

import (
	"math"
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// windowed changes the network for a while. Of two windows of one kind the later one counts while both are open.
func windowed(change func(*world.Network, *dice.Dice)) func(*world.World, Fault, *dice.Dice) {
	return func(w *world.World, f Fault, d *dice.Dice) {
		drawn := d.Next()
		w.Disturb(f.Lasts, func(n *world.Network) { change(n, dice.From(drawn)) })
	}
}

func endWatches(w *world.World, d *dice.Dice, expire bool) {
	for _, st := range w.Server.Streams() {
		switch {
		case d.Chance(0.5):
		case expire:
			st.Expire()
		default:
			st.End(dice.Pick(d, []error{nil, server.ErrCut}))
		}
	}
	if expire {
		w.Server.Compact()
	}
}

func serverDown(w *world.World, f Fault, _ *dice.Dice) {
	w.Down = true
	for _, st := range w.Server.Streams() {
		st.End(server.ErrCut)
	}
	w.After(f.Lasts, func() { w.Down = false })
}

func partition(w *world.World, f Fault, d *dice.Dice) {
	n := someNode(w, d)
	n.Cut = true
	breaks := d.Chance(0.5)
	w.After(f.Lasts, func() { w.Join(n, breaks) })
}

// some picks running processes: one, often one that is held up or that was picked before, or more than half.
func some(w *world.World, d *dice.Dice, major bool) []*world.Process {
	running := w.Running()
	if len(running) == 0 {
		return nil
	}
	if major {
		return dice.Sample(d, running, d.Between(len(running)/2+1, len(running)))
	}
	if held := w.HeldUp(); len(held) > 0 && d.Chance(0.5) {
		if p := dice.Pick(d, held); p.Runs() {
			w.Victim = p.Pod
			return []*world.Process{p}
		}
	}
	for _, p := range running {
		if p.Pod != "" && p.Pod == w.Victim && d.Chance(w.Clings) {
			return []*world.Process{p}
		}
	}
	p := dice.Pick(d, running)
	w.Victim = p.Pod
	return []*world.Process{p}
}

func killSome(w *world.World, d *dice.Dice, major bool) {
	for _, p := range some(w, d, major) {
		w.Kill(p)
	}
}

// killFirst kills the process that acts under id 0.
func killFirst(w *world.World, _ *dice.Dice) {
	if p := first(w); p != nil {
		w.Kill(p)
	}
}

func first(w *world.World) *world.Process {
	for _, p := range w.Running() {
		if b := p.Belief(); b != nil && b.ID == 0 {
			return p
		}
	}
	return nil
}

func nodeCrash(w *world.World, f Fault, d *dice.Dice) {
	n := someNode(w, d)
	w.Crash(n)
	w.After(f.Lasts, func() {
		n.Down = false
		w.SyncNode(n)
	})
}

func suspendSome(w *world.World, f Fault, d *dice.Dice, major bool) {
	for _, p := range some(w, d, major) {
		w.Suspend(p, time.Duration(float64(f.Lasts)*(0.5+d.Float()/2)))
	}
}

func suspendFirst(w *world.World, f Fault, _ *dice.Dice) {
	if p := first(w); p != nil {
		w.Suspend(p, f.Lasts)
	}
}

func suspendNode(w *world.World, f Fault, d *dice.Dice) {
	n := someNode(w, d)
	w.SuspendNode(n)
	w.After(f.Lasts, func() { w.ResumeNode(n) })
}

// kubeletDown: no pod of a node starts or ends, and its processes keep running.
func kubeletDown(w *world.World, f Fault, d *dice.Dice) {
	n := someNode(w, d)
	n.Mute = true
	w.After(f.Lasts, func() {
		n.Mute = false
		w.SyncNode(n)
	})
}

// lostNode cuts a node off for good, or its kubelet alone: its kubelet and its processes may run on, stand still or be gone. Its pods are deleted after
// a while, and stay. Half of the nodes come back before the history ends.
func lostNode(w *world.World, f Fault, d *dice.Dice) {
	n := someNode(w, d)
	if slices.ContainsFunc(w.Nodes, func(n *world.Node) bool { return n.Lost }) || len(w.Nodes) < 2 {
		return
	}
	kind := d.Below(5)
	if kind == 3 { // one that is cut off already stays so: what its processes have not heard yet comes before what is new
		n.Deaf = true
	} else {
		n.Cut = true
	}
	switch kind {
	case 0:
		w.Crash(n)
	case 1:
		w.SuspendNode(n)
	case 2:
		n.Mute = true
	}
	w.After(d.Span(0, 20*time.Second), func() {
		if (n.Cut || n.Deaf) && !slices.ContainsFunc(w.Nodes, func(n *world.Node) bool { return n.Lost }) {
			w.Desert(n)
		}
	})
	if d.Chance(0.5) || !w.Profile.Strict() {
		w.After(f.Lasts, func() { w.BringBack(n) })
	}
}

// toSomePod is a fault of some pod.
func toSomePod(do func(w *world.World, v *server.Version, d *dice.Dice)) func(*world.World, Fault, *dice.Dice) {
	return func(w *world.World, _ Fault, d *dice.Dice) {
		if v := somePod(w, d); v != nil {
			do(w, v, d)
		}
	}
}

// switched turns something on for a while.
func switched(turn func(w *world.World, on bool)) func(*world.World, Fault, *dice.Dice) {
	return func(w *world.World, f Fault, _ *dice.Dice) {
		turn(w, true)
		w.After(f.Lasts, func() { turn(w, false) })
	}
}

// somePod picks a pod of the owner: where a process is held up, often that one's, or the one that was picked before.
func somePod(w *world.World, d *dice.Dice) *server.Version {
	all := w.Server.Objects(object.Pods)
	if held := w.HeldUp(); len(held) > 0 && d.Chance(0.5) {
		if v := w.Server.Get(object.Pods, dice.Pick(d, held).Pod); v != nil {
			w.Victim = v.Name
			return v
		}
	}
	if v := w.Server.Get(object.Pods, w.Victim); v != nil && d.Chance(w.Clings) {
		return v
	}
	if len(all) == 0 {
		return nil
	}
	v := dice.Pick(d, all)
	w.Victim = v.Name
	return v
}

// someNode picks a machine: often that of the pod that was picked before.
func someNode(w *world.World, d *dice.Dice) *world.Node {
	if v := w.Server.Get(object.Pods, w.Victim); v != nil && d.Chance(w.Clings) {
		if n := w.NodeOf(v); n != nil {
			return n
		}
	}
	return dice.Pick(d, w.Nodes)
}

// deleteNode removes a Node object while its machine is cut off; the pod garbage collector removes its pods.
func deleteNode(w *world.World, f Fault, d *dice.Dice) {
	n := someNode(w, d)
	n.Cut = true
	w.After(d.Span(0, f.Lasts/2+1), func() {
		for _, v := range w.Server.Objects(object.Pods) {
			if object.Text(v.Object, "spec", "nodeName") != n.Name {
				continue
			}
			w.Server.Change(object.Pods, v.Name, server.Writer{Manager: world.ControllerManager}, func(o object.Object) {
				status := object.Need(o, "status")
				status["phase"] = object.Failed
				status["conditions"] = []any{object.Object{"type": "DisruptionTarget", "reason": "DeletionByPodGC", "status": "True"}}
			})
			w.Forsake(v)
		}
		w.After(d.Span(0, 5*time.Second), func() {
			for _, v := range w.Server.Objects(object.Pods) {
				if object.Text(v.Object, "spec", "nodeName") == n.Name && object.Text(v.Object, "status", "phase") == object.Failed {
					w.Server.Remove(v)
				}
			}
		})
	})
	w.After(f.Lasts, func() { w.Join(n, true) })
}

// declareFailed: a controller without word from the kubelet declares a pod Failed, whose machine is cut off.
func declareFailed(w *world.World, f Fault, d *dice.Dice) {
	v := somePod(w, d)
	if v == nil {
		return
	}
	n := w.NodeOf(v)
	if n == nil || object.Text(v.Object, "spec", "nodeName") == "" {
		return
	}
	n.Cut = true
	w.After(d.Span(0, f.Lasts/2+1), func() {
		if now := w.Server.Get(object.Pods, v.Name); now == nil || object.UID(now.Object) != object.UID(v.Object) {
			return
		}
		w.Server.Change(object.Pods, v.Name, server.Writer{Manager: world.ControllerManager}, func(o object.Object) {
			status := object.Need(o, "status")
			status["phase"] = object.Failed
			switch d.Below(3) {
			case 0: // as a pod that is rejected
				delete(status, "containerStatuses")
			case 1:
				status["containerStatuses"] = world.ContainerStatus("terminated", "ContainerStatusUnknown")
			}
		})
		w.Forsake(v)
	})
	w.After(f.Lasts, func() { w.Join(n, true) })
}

// hide takes away one of the labels by which a relabelled pod is found, or both, until it restores them. A controller that does not know
// such labels does so again and again.
func hide(w *world.World, f Fault, d *dice.Dice) {
	v := somePod(w, d)
	if v == nil {
		return
	}
	w.Relabel(v.Name)
	gone := dice.Pick(d, [][]string{{receipt.IDLabel}, {receipt.OwnerLabel}, {receipt.IDLabel, receipt.OwnerLabel}})
	until := w.Now()
	if d.Chance(0.5) {
		until += f.Lasts
	}
	var strip func()
	strip = func() {
		now := w.Server.Get(object.Pods, v.Name)
		if w.Quiet || now == nil || object.UID(now.Object) != object.UID(v.Object) {
			return
		}
		w.Server.Change(object.Pods, v.Name, server.Writer{Manager: "kubectl-label"}, func(o object.Object) {
			for _, label := range gone {
				object.SetText(o, "labels", label, "")
			}
		})
		if again := d.Tail(2 * time.Second); w.Now()+again < until {
			w.After(again, strip)
		}
	}
	strip()
}

// replacePod is kubectl replace --force: another pod under the same name, while the first one's processes may run on. What restores
// a backup brings its annotations back, too.
func replacePod(w *world.World, v *server.Version, d *dice.Dice) {
	next := object.Clone(v.Object)
	meta := object.Need(next, object.Metadata)
	for _, field := range []string{"uid", "resourceVersion", "generation", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		delete(meta, field)
	}
	if d.Chance(0.7) {
		delete(meta, "annotations")
		delete(object.At(next, object.Metadata, "labels"), receipt.IDLabel)
		delete(object.At(next, object.Metadata, "labels"), receipt.OwnerLabel)
	}
	delete(object.At(next, "spec"), "nodeName")
	next["status"] = object.Object{"phase": "Pending", "ready": "False"}
	world.Gate(next)
	w.Server.Remove(v)
	w.After(d.Tail(50*time.Millisecond), func() {
		if !w.Quiet && w.Server.Get(object.Pods, v.Name) == nil { // or the pod too many would stay
			w.Server.Put(object.KindOf(object.Pods), next, server.Writer{Manager: "kubectl-replace"})
		}
	})
}

// drawHoldUp draws which requests wait, and how often.
func drawHoldUp(n *world.Network, d *dice.Dice) {
	n.HoldUp = world.HoldUp{
		Chance: math.Pow(10, -1.5*d.Float()), Steps: uint(d.Between(1, 1<<world.KindsOfSteps-1)), Again: dice.Pick(d, []float64{0, 0.5, 0.9}), Meanwhile: dice.Pick(d, []float64{0.2, 0.6, 0.8}),
	}
}
