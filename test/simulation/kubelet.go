package simulation

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// node is a machine with a kubelet.
type node struct {
	name   string
	offset time.Duration // of its wall clock
	rate   float64       // of its boot-time clock
	cut    bool          // it is cut off from the API server
	down   bool          // it does not run at all
	frozen bool          // everything on it is suspended
	mute   bool          // its kubelet does not run; its processes do
}

// kubeletPod is a pod as its kubelet has it. It outlives the pod's object until the kubelet hears of that.
type kubeletPod struct {
	name, uid string
	node      *node
	process   *process // nil before the first start
	beside    *beside  // nil but for commands
	runs      int
	stopping  bool // SIGTERM was sent
	evicted   bool
	gone      bool // the kubelet is done with it
	forced    bool // its object was removed while its process ran
	heard     bool // the kubelet knows of the deletion
	due       bool // a sync is due
	stuck     bool // it does not start
}

const kubelet = "kubelet"

// container is the name of each pod's one container.
const container = "main"

// containerStatus is what a kubelet says of it.
func containerStatus(state, reason string) []any {
	return []any{object.Object{"name": container, "state": object.Object{state: object.Object{"reason": reason}}}}
}

func (w *world) makeNodes() {
	for i := range w.profile.Nodes {
		d := w.dice("node", strconv.Itoa(i))
		n := &node{name: "node-" + strconv.Itoa(i), rate: 1, offset: d.Span(-w.profile.Skew, w.profile.Skew)}
		if i == 0 {
			n.offset += w.profile.Ahead
		}
		if w.profile.FenceAfter > 0 {
			n.rate = 1 + (d.Float()-0.5)*0.048
		}
		w.nodes = append(w.nodes, n)
	}
}

func podKey(name, uid string) string { return name + "/" + uid }

// works reports whether a process of the pod runs, or work that outlived one.
func (k *kubeletPod) works() bool {
	p := k.process
	return p != nil && ((!p.ended && !p.dead) || p.outlives())
}

// kubeletHears is told of every change of a pod; the kubelet hears of it later.
func (w *world) kubeletHears(v *server.Version) {
	if v.Object == nil {
		if k := w.pods[podKey(v.Name, object.UID(v.Before.Object))]; k != nil && !k.gone {
			k.forced = k.works()
			w.syncSoon(k)
		}
		return
	}
	key := podKey(v.Name, object.UID(v.Object))
	k := w.pods[key]
	if k == nil {
		d := w.dice("schedule", key)
		k = &kubeletPod{name: v.Name, uid: object.UID(v.Object), node: dice.Pick(d, w.nodes)}
		k.stuck = d.Chance(w.stuck)
		w.pods[key] = k
		w.syncAfter(k, d.Span(10*time.Millisecond, 3*time.Second))
		return
	}
	if object.Terminating(v.Object) && !k.stopping {
		w.syncSoon(k)
	}
}

// kubeletSees is told when something happened in a container.
func (w *world) kubeletSees(name, uid string) {
	if k := w.pods[podKey(name, uid)]; k != nil && !k.gone {
		w.syncSoon(k)
	}
}

func (w *world) syncSoon(k *kubeletPod) {
	d := w.dice("sync", k.uid, strconv.Itoa(w.steps))
	w.syncAfter(k, d.Span(time.Millisecond, 2*time.Second))
}

func (w *world) syncAfter(k *kubeletPod, delay time.Duration) {
	if k.due {
		return
	}
	k.due = true
	w.After(delay, func() {
		k.due = false
		w.sync(k)
	})
}

// sync brings one pod in line, as its kubelet's loop does. Without contact it goes on with what it knows.
func (w *world) sync(k *kubeletPod) {
	if k.gone {
		return
	}
	if k.node.down || k.node.frozen || k.node.mute {
		return // repeated when the node is back
	}
	w.Step("sync", k.name, k.uid)
	var o object.Object
	if !k.node.cut {
		if v := w.server.Get(object.Pods, k.name); v != nil && object.UID(v.Object) == k.uid {
			o = v.Object
		}
		k.heard = k.heard || o == nil || object.Terminating(o) || object.Text(o, "status", "phase") == object.Failed // whoever declared that
	}
	running := k.process != nil && !k.process.ended && !k.process.dead
	switch {
	case k.heard || k.evicted:
		if running {
			w.stopPod(k, o)
			return
		}
		w.finishPod(k, o)
		return
	case k.process == nil && o == nil:
		return // not heard of yet
	case k.process == nil && k.stuck:
		return
	case !running:
		w.startPod(k)
	}
	w.report(k, o)
}

// stopPod sends SIGTERM once, and SIGKILL when the grace is over.
func (w *world) stopPod(k *kubeletPod, _ object.Object) {
	if k.stopping {
		return
	}
	k.stopping = true
	p := k.process
	p.terminate()
	w.After(w.profile.Grace, func() {
		kill := func() {
			k.end()
			if k.process == p && !p.ended && !p.dead {
				p.kill()
				w.syncSoon(k)
			}
		}
		if k.node.frozen {
			p.asleep = append(p.asleep, kill)
			return
		}
		kill()
	})
}

// finishPod reports the end and lets the object go.
func (w *world) finishPod(k *kubeletPod, o object.Object) {
	if k.node.cut {
		return // repeated when the node is back
	}
	k.end()
	k.gone = true
	if o == nil {
		return
	}
	unwell := k.evicted || (k.process != nil && k.process.dead)
	w.server.Change(object.Pods, k.name, server.Writer{Manager: kubelet, Status: true}, func(next object.Object) {
		status := object.Need(next, "status")
		status["phase"] = object.Succeeded
		if unwell {
			status["phase"] = object.Failed
		}
		if k.evicted {
			status["reason"] = "Evicted"
		}
		status["ready"], status["containerStatuses"] = "False", containerStatus("terminated", "Completed")
	})
	if v := w.server.Get(object.Pods, k.name); v != nil && object.Terminating(v.Object) {
		w.server.Remove(v)
	}
}

// startPod starts the container, again after a while if it ended before.
func (w *world) startPod(k *kubeletPod) {
	k.runs++
	d := w.dice("start", k.uid, strconv.Itoa(k.runs))
	delay := d.Span(time.Millisecond, time.Second)
	if k.runs > 1 {
		delay = d.Span(time.Second, min(time.Duration(k.runs)*4*time.Second, time.Minute))
	}
	p := w.newProcess(k.name, k.uid, k.runs, k.node)
	if k.process != nil && k.process.ended && !k.process.dead {
		w.note("restart", p.id)
	}
	p.cancel = func() { p.ended = true } // before it runs, there is nothing to stop
	if w.profile.Command && k.beside == nil {
		k.beside = newBeside()
	}
	p.beside = k.beside
	if k.process != nil && k.process.outlives() {
		w.witness.handOn(k.process, p)
	}
	w.processes = append(slices.DeleteFunc(w.processes, func(other *process) bool {
		return (other.dead || other.ended) && (other == k.process || !other.outlives())
	}), p)
	k.process = p
	w.After(delay, func() {
		if p.ended || p.dead {
			p.ended = true
			w.syncSoon(k)
			return
		}
		w.Step("start", p.id, k.node.name)
		p.launch()
	})
}

// report tells the API server whether the pod runs and is ready.
func (w *world) report(k *kubeletPod, o object.Object) {
	if o == nil {
		return
	}
	ready := "False"
	if k.process.belief() != nil && !k.process.dead && !k.process.ended {
		ready = "True"
	}
	status := object.At(o, "status")
	if status != nil && object.Text(status, "ready") == ready && object.Text(status, "phase") == "Running" && object.Text(o, "spec", "nodeName") == k.node.name {
		return
	}
	w.server.Change(object.Pods, k.name, server.Writer{Manager: kubelet, Status: true}, func(next object.Object) {
		object.Need(next, "spec")["nodeName"] = k.node.name
		status := object.Need(next, "status")
		status["phase"], status["ready"], status["containerStatuses"] = "Running", ready, containerStatus("running", "")
	})
}

// syncNode brings every pod of a node in line.
func (w *world) syncNode(n *node) {
	for _, key := range slices.Sorted(maps.Keys(w.pods)) {
		if k := w.pods[key]; k.node == n && !k.gone {
			w.syncSoon(k)
		}
	}
}

// isGhost says that the process's pod object was removed while it ran.
func (w *world) isGhost(p *process) bool {
	k := w.pods[podKey(p.pod, p.uid)]
	return k != nil && k.forced
}

// running returns the processes that run, by start.
func (w *world) running() []*process {
	var out []*process
	for _, p := range w.processes {
		if !p.ended && !p.dead {
			out = append(out, p)
		}
	}
	return out
}

// evict ends a pod and leaves it as Failed.
func (w *world) evict(name string) {
	v := w.server.Get(object.Pods, name)
	if v == nil {
		return
	}
	if k := w.pods[podKey(name, object.UID(v.Object))]; k != nil && !k.gone {
		k.evicted = true
		w.note("evict", name)
		w.syncSoon(k)
	}
}
