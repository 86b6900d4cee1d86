package simulation

import (
	"maps"
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
)

// windowed changes the network for a while. Where two windows meet, the later one has it.
func windowed(change func(*network, *dice.Dice)) func(*world, Fault, *dice.Dice) {
	return func(w *world, f Fault, d *dice.Dice) {
		before := w.net
		change(&w.net, d)
		w.after(f.Lasts, func() {
			if !w.quiet {
				w.net = before
			}
		})
	}
}

func (w *world) endWatches(d *dice.Dice, expire bool) {
	for _, resource := range slices.Sorted(maps.Keys(w.server.watchers)) {
		for _, st := range w.server.watchers[resource] {
			if d.Chance(0.5) {
				continue
			}
			if expire {
				st.expire()
				continue
			}
			st.end(dice.Pick(d, []error{nil, errCut}))
		}
	}
	if expire {
		w.server.oldest = w.server.rv
	}
}

func serverDown(w *world, f Fault, _ *dice.Dice) {
	w.server.down = true
	for _, resource := range slices.Sorted(maps.Keys(w.server.watchers)) {
		for _, st := range w.server.watchers[resource] {
			st.end(errCut)
		}
	}
	w.after(f.Lasts, func() { w.server.down = false })
}

func partition(w *world, f Fault, d *dice.Dice) {
	n := dice.Pick(d, w.nodes)
	n.cut = true
	breaks := d.Chance(0.5)
	w.after(f.Lasts, func() { w.join(n, breaks) })
}

// join connects a node again. Its connections may have broken meanwhile.
func (w *world) join(n *node, breaks bool) {
	n.cut = false
	for _, p := range w.processes {
		if p.node != n {
			continue
		}
		if breaks {
			w.breakConnections(p)
		}
		p.reach()
	}
	w.syncNode(n)
}

// breakConnections lets everything that is under way to a process end with an error.
func (w *world) breakConnections(p *process) {
	for i := range p.held {
		p.held[i].do = p.held[i].broken
	}
	for _, resource := range slices.Sorted(maps.Keys(w.server.watchers)) {
		for _, st := range slices.Clone(w.server.watchers[resource]) {
			if st.p == p {
				st.end(errCut)
			}
		}
	}
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

func (w *world) kill(p *process) {
	p.kill()
	w.kubeletSees(p.pod, p.uid)
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
	n.down = true
	for _, p := range w.running() {
		if p.node == n {
			p.kill()
		}
	}
	for _, k := range w.pods {
		if k.node == n && k.beside != nil {
			k.beside.set(nil)
			k.beside.shown = identity.Identity{}
		}
	}
	w.after(f.Lasts, func() {
		n.down = false
		w.syncNode(n)
	})
}

func (w *world) suspend(p *process, lasts time.Duration) {
	p.freeze()
	w.after(lasts, p.goOn)
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
	n.frozen = true
	for _, p := range w.running() {
		if p.node == n {
			p.freeze()
		}
	}
	w.after(f.Lasts, func() { w.resumeNode(n) })
}

// kubeletDown: nobody starts or ends anything on a node, whose processes go on.
func kubeletDown(w *world, f Fault, d *dice.Dice) {
	n := dice.Pick(d, w.nodes)
	n.mute = true
	w.after(f.Lasts, func() {
		n.mute = false
		w.syncNode(n)
	})
}

func (w *world) resumeNode(n *node) {
	n.frozen = false
	for _, p := range w.processes {
		if p.node == n {
			p.goOn()
		}
	}
	w.syncNode(n)
}

// somePod picks a pod of the owner: where somebody is held up, often that one's.
func (w *world) somePod(d *dice.Dice) *version {
	all := w.server.objects(object.Pods)
	if len(w.waiting) > 0 && d.Chance(0.5) {
		if v := w.server.get(object.Pods, dice.Pick(d, w.waiting).p.pod); v != nil {
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
		w.server.remove(v)
	}
}

// deleteNode removes a Node object while its machine is cut off; the pod garbage collector removes its pods.
func deleteNode(w *world, f Fault, d *dice.Dice) {
	n := dice.Pick(d, w.nodes)
	n.cut = true
	w.after(d.Span(0, f.Lasts/2+1), func() {
		for _, v := range w.server.objects(object.Pods) {
			if object.Text(v.object, "spec", "nodeName") != n.name {
				continue
			}
			w.server.change(object.Pods, v.name, writer{manager: manager, status: true}, func(o object.Object) {
				status := object.Need(o, "status")
				status["phase"] = object.Failed
				status["conditions"] = []any{object.Object{"type": "DisruptionTarget", "reason": "DeletionByPodGC", "status": "True"}}
			})
			w.forsake(v)
		}
		w.after(d.Span(0, 5*time.Second), func() {
			for _, v := range w.server.objects(object.Pods) {
				if object.Text(v.object, "spec", "nodeName") == n.name && object.Text(v.object, "status", "phase") == object.Failed {
					w.server.remove(v)
				}
			}
		})
	})
	w.after(f.Lasts, func() { w.join(n, true) })
}

// declareFailed: somebody who has no word of the kubelet's declares a pod Failed, whose machine is cut off.
func declareFailed(w *world, f Fault, d *dice.Dice) {
	v := w.somePod(d)
	if v == nil {
		return
	}
	k := w.pods[podKey(v.name, object.UID(v.object))]
	if k == nil || k.gone || object.Text(v.object, "spec", "nodeName") == "" {
		return
	}
	k.node.cut = true
	w.after(d.Span(0, f.Lasts/2+1), func() {
		if now := w.server.get(object.Pods, v.name); now == nil || object.UID(now.object) != k.uid {
			return
		}
		w.server.change(object.Pods, v.name, writer{manager: manager, status: true}, func(o object.Object) {
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
	w.after(f.Lasts, func() { w.join(k.node, true) })
}

// forsake notes that a pod was declared dead while its process may run.
func (w *world) forsake(v *version) {
	if k := w.pods[podKey(v.name, object.UID(v.object))]; k != nil && !k.gone && k.works() {
		k.forced = true
	}
}

func relabel(w *world, _ Fault, d *dice.Dice) {
	if v := w.somePod(d); v != nil {
		w.relabel(v.name)
	}
}

// hide takes away one of the labels by which a relabelled pod is found, or both, until it restores them.
func hide(w *world, _ Fault, d *dice.Dice) {
	if v := w.somePod(d); v != nil {
		w.relabel(v.name)
		gone := dice.Pick(d, [][]string{{assignment.InstanceIDLabel}, {assignment.OwnerLabel}, {assignment.InstanceIDLabel, assignment.OwnerLabel}})
		w.server.change(object.Pods, v.name, writer{manager: "kubectl-label"}, func(o object.Object) {
			for _, label := range gone {
				object.SetText(o, "labels", label, "")
			}
		})
	}
}

// relabel takes a pod out of its workload: another one runs in its place.
func (w *world) relabel(pod string) {
	w.server.change(object.Pods, pod, writer{manager: "kubectl-label"}, func(o object.Object) { object.SetText(o, "labels", appLabel, "debug") })
}

// replacePod is kubectl replace --force: another pod under the same name, while the first one's processes may run on. What restores
// a backup brings its annotations back, too.
func replacePod(w *world, _ Fault, d *dice.Dice) {
	v := w.somePod(d)
	if v == nil {
		return
	}
	next := object.Clone(v.object)
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
	w.server.remove(v)
	w.after(d.Tail(50*time.Millisecond), func() {
		if !w.quiet && w.server.get(object.Pods, v.name) == nil { // or nobody would take the pod too many away
			w.server.put(object.KindOf(object.Pods), next, writer{manager: "kubectl-replace"})
		}
	})
}
