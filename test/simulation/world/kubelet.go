package world

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// Node is a machine with a kubelet.
type Node struct {
	Name   string
	offset time.Duration // of its wall clock
	rate   float64       // of its boot-time clock
	Cut    bool          // it is cut off from the API server
	Down   bool          // it does not run at all
	frozen bool          // everything on it is suspended
	Mute   bool          // its kubelet does not run; its processes do
	Deaf   bool          // its kubelet alone is cut off
	Lost   bool          // it is cut off until an operator brings it back; its pods were deleted, and no other pod is placed on it
}

// kubeletPod is a pod as its kubelet has it. It outlives the pod's object until the kubelet hears of that.
type kubeletPod struct {
	name, uid string
	node      *Node
	process   *Process // nil before the first start
	beside    *beside  // nil but for commands
	runs      int
	stopping  bool // SIGTERM was sent
	evicted   bool
	gone      bool          // the kubelet is done with it
	forced    bool          // its object was removed while its process ran
	heard     bool          // the kubelet knows of the deletion
	due       bool          // a sync is due
	stuck     bool          // it does not start
	spent     bool          // its program has ended for good, or is to
	forgotten bool          // its machine crashed: a kubelet that starts has no pods before the API server tells it of them
	known     object.Object // the pod as the kubelet heard of it last
}

const kubelet = "kubelet"

// container is the name of each pod's one container.
const container = "main"

// ContainerStatus is what a kubelet says of it.
func ContainerStatus(state, reason string) []any {
	return []any{object.Object{"name": container, "state": object.Object{state: object.Object{"reason": reason}}}}
}

// MakeNodes makes the machines of the profile, with clocks of their own.
func (w *World) MakeNodes() {
	for i := range w.Profile.Nodes {
		d := w.Dice("node", strconv.Itoa(i))
		n := &Node{Name: "node-" + strconv.Itoa(i), rate: 1, offset: d.Span(-w.Profile.Skew, w.Profile.Skew)}
		if i == 0 {
			n.offset += w.Profile.Ahead
		}
		if w.Profile.FenceAfter > 0 {
			n.rate = 1 + (d.Float()-0.5)*0.048
		}
		w.Nodes = append(w.Nodes, n)
	}
}

// PodKey tells pods apart, also those of one name.
func PodKey(name, uid string) string { return name + "/" + uid }

// works reports whether a process of the pod runs, or work that outlived one.
func (k *kubeletPod) works() bool {
	p := k.process
	return p != nil && (p.Runs() || p.outlives())
}

// kubeletHears is told of every change of a pod; the kubelet hears of it later.
func (w *World) kubeletHears(v *server.Version) {
	if v.Object == nil {
		if k := w.pods[PodKey(v.Name, object.UID(v.Before.Object))]; k != nil && !k.gone {
			k.forced = k.works()
			w.syncSoon(k)
		}
		return
	}
	key := PodKey(v.Name, object.UID(v.Object))
	k := w.pods[key]
	if k == nil {
		if isGated(v.Object) {
			return
		}
		d := w.Dice("schedule", key)
		k = &kubeletPod{name: v.Name, uid: object.UID(v.Object), node: dice.Pick(d, w.present())}
		k.stuck = d.Chance(w.Stuck)
		w.pods[key] = k
		w.syncAfter(k, d.Span(10*time.Millisecond, 3*time.Second))
		return
	}
	if object.Terminating(v.Object) && !k.stopping || k.isToldAgain(v.Object) {
		w.syncSoon(k)
	}
}

// present returns the nodes that a pod can be placed on.
func (w *World) present() []*Node {
	return slices.DeleteFunc(slices.Clone(w.Nodes), func(n *Node) bool { return n.Lost })
}

// kubeletSees is told when something happened in a container.
func (w *World) kubeletSees(name, uid string) {
	if k := w.pods[PodKey(name, uid)]; k != nil && !k.gone {
		w.syncSoon(k)
	}
}

func (w *World) syncSoon(k *kubeletPod) {
	d := w.Dice("sync", k.uid, strconv.Itoa(w.Steps))
	w.syncAfter(k, d.Span(time.Millisecond, 2*time.Second))
}

func (w *World) syncAfter(k *kubeletPod, delay time.Duration) {
	if k.due {
		return
	}
	k.due = true
	w.After(delay, func() {
		k.due = false
		w.sync(k)
	})
}

// sync brings one pod in line, as its kubelet's loop does. Without contact it acts by what it knows.
func (w *World) sync(k *kubeletPod) {
	if k.gone {
		return
	}
	if k.node.Down || k.node.frozen || k.node.Mute {
		return // repeated when the node is back
	}
	w.Step("sync", k.name, k.uid)
	var o object.Object
	if k.node.Cut || k.node.Deaf {
		if k.forgotten {
			return
		}
	} else {
		k.forgotten = false
		if v := w.Server.Get(object.Pods, k.name); v != nil && object.UID(v.Object) == k.uid {
			o = v.Object
			k.known = o
		}
		k.heard = k.heard || o == nil || object.Terminating(o) || object.Text(o, "status", "phase") == object.Failed // by the kubelet or not
	}
	running := k.process != nil && k.process.Runs()
	switch {
	case k.heard || k.evicted:
		if running {
			w.stopPod(k)
			return
		}
		w.finishPod(k, o)
		return
	case k.process == nil && o == nil:
		return // not heard of yet
	case k.process == nil && k.stuck:
		return
	case !running && k.spent: // the pod lives on
	case !running:
		w.startPod(k)
	default:
		k.process.read(k.known)
	}
	w.report(k, o)
}

// stopPod sends SIGTERM once, and SIGKILL when the grace is over.
func (w *World) stopPod(k *kubeletPod) {
	if k.stopping {
		return
	}
	k.stopping = true
	p := k.process
	p.terminate()
	w.After(w.Profile.Grace, func() {
		kill := func() {
			k.end()
			if k.process == p && p.Runs() {
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
func (w *World) finishPod(k *kubeletPod, o object.Object) {
	if k.node.Cut || k.node.Deaf {
		return // repeated when the node is back
	}
	k.end()
	k.gone = true
	if o == nil {
		return
	}
	unwell := k.evicted || (k.process != nil && k.process.Dead)
	w.Server.Change(object.Pods, k.name, server.Writer{Manager: kubelet}, func(next object.Object) {
		status := object.Need(next, "status")
		status["phase"] = object.Succeeded
		if unwell {
			status["phase"] = object.Failed
		}
		if k.evicted {
			status["reason"] = "Evicted"
		}
		status["ready"], status["containerStatuses"] = "False", ContainerStatus("terminated", "Completed")
	})
	if v := w.Server.Get(object.Pods, k.name); v != nil && object.Terminating(v.Object) {
		w.Server.Remove(v)
	}
}

// startPod starts the container, again after a while if it ended before.
func (w *World) startPod(k *kubeletPod) {
	k.runs++
	d := w.Dice("start", k.uid, strconv.Itoa(k.runs))
	delay := d.Span(time.Millisecond, time.Second)
	if k.runs > 1 {
		delay = d.Span(time.Second, min(time.Duration(k.runs)*4*time.Second, time.Minute))
	}
	p := w.newProcess(k.name, k.uid, k.known, k.runs, k.node)
	p.Assigned = IsAssigned(k.known) // another pod may have its name by now
	// A kubelet that is cut off has a program begin once more whose object went, or was declared dead, while none ran.
	v := w.Server.Get(object.Pods, k.name)
	k.forced = k.forced || p.Assigned && (v == nil || object.UID(v.Object) != k.uid || object.Ended(v.Object))
	if k.process != nil && k.process.Ended && !k.process.Dead {
		w.Note("restart", p.ID)
	}
	p.cancel = func() { p.Ended = true } // before it runs, there is nothing to stop
	if w.Profile.Command && k.beside == nil && !p.Assigned {
		k.beside = newBeside()
	}
	p.beside = k.beside
	if k.process != nil && k.process.outlives() {
		w.Witness.HandOn(k.process, p)
	}
	w.Processes = append(slices.DeleteFunc(w.Processes, func(other *Process) bool {
		return !other.Runs() && (other == k.process || !other.outlives())
	}), p)
	k.process = p
	if k.beside != nil {
		k.beside.ending = k.stopping // the process before it may have been told to end
	}
	w.After(delay, func() {
		if !p.Runs() {
			p.Ended = true
			w.syncSoon(k)
			return
		}
		w.Step("start", p.ID, k.node.Name)
		p.read(k.known)
		p.launch()
	})
}

// report tells the API server whether the pod runs and is ready.
func (w *World) report(k *kubeletPod, o object.Object) {
	if o == nil {
		return
	}
	ready := "False"
	if k.process.Belief() != nil && k.process.Runs() && w.isWarm(k) {
		ready = "True"
	}
	status := object.At(o, "status")
	if status != nil && object.Text(status, "ready") == ready && object.Text(status, "phase") == "Running" && object.Text(o, "spec", "nodeName") == k.node.Name {
		return
	}
	w.Server.Change(object.Pods, k.name, server.Writer{Manager: kubelet}, func(next object.Object) {
		object.Need(next, "spec")["nodeName"] = k.node.Name
		status := object.Need(next, "status")
		if w.Profile.Controllers > 0 && object.Text(status, "ready") != ready {
			status["conditions"] = []any{object.Object{"type": "Ready", "status": ready, "lastTransitionTime": w.Wall().Format(time.RFC3339)}}
		}
		status["phase"], status["ready"], status["containerStatuses"] = "Running", ready, ContainerStatus("running", "")
	})
}

// isWarm reports whether the process has acted for long enough to be ready. If not, its kubelet looks again then.
func (w *World) isWarm(k *kubeletPod) bool {
	p := k.process
	if p.warm == 0 {
		p.warm = w.Now() + w.Profile.Warm
		w.After(w.Profile.Warm, func() { w.syncSoon(k) })
	}
	return w.Now() >= p.warm
}

// SyncNode brings every pod of a node in line.
func (w *World) SyncNode(n *Node) {
	for _, key := range slices.Sorted(maps.Keys(w.pods)) {
		if k := w.pods[key]; k.node == n && !k.gone {
			w.syncSoon(k)
		}
	}
}

// Forced reports whether the pod of a process was deleted by force or declared dead while the process ran.
func (w *World) Forced(p *Process) bool {
	k := w.pods[PodKey(p.Pod, p.UID)]
	return k != nil && k.forced
}

// Running returns the processes that run, by start.
func (w *World) Running() []*Process {
	var out []*Process
	for _, p := range w.Processes {
		if p.Runs() {
			out = append(out, p)
		}
	}
	return out
}

// Evict ends a pod and leaves it as Failed.
func (w *World) Evict(name string) {
	v := w.Server.Get(object.Pods, name)
	if v == nil {
		return
	}
	if k := w.pods[PodKey(name, object.UID(v.Object))]; k != nil && !k.gone {
		k.evicted = true
		w.Note("evict", name)
		w.syncSoon(k)
	}
}

// NodeOf returns where a pod is, nil if no kubelet has to do with it.
func (w *World) NodeOf(v *server.Version) *Node {
	k := w.pods[PodKey(v.Name, object.UID(v.Object))]
	if k == nil || k.gone {
		return nil
	}
	return k.node
}
