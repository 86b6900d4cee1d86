package world

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// Join connects a node again, unless it is lost. Its connections may have broken meanwhile. One that is connected already keeps them.
func (w *World) Join(n *Node, breaks bool) {
	if n.Lost {
		return
	}
	breaks, n.Cut = breaks && n.Cut, false
	for _, p := range w.Processes {
		if p.Node != n {
			continue
		}
		if breaks {
			w.breakConnections(p)
		}
		p.reach()
	}
	w.SyncNode(n)
}

// breakConnections lets everything that is under way to a process end with an error.
func (w *World) breakConnections(p *Process) {
	for i := range p.held {
		p.held[i].do = p.held[i].broken
	}
	for _, st := range w.Server.Streams() {
		if st.Client == p {
			st.End(server.ErrCut)
		}
	}
}

// Kill kills a process, and its kubelet hears of it.
func (w *World) Kill(p *Process) {
	p.kill()
	w.kubeletSees(p.Pod, p.UID)
}

// Spend has the program of a pod end for good, while the pod lives: its other containers go on. The program is told to end, or it is killed.
func (w *World) Spend(v *server.Version, told bool) {
	k := w.pods[PodKey(v.Name, object.UID(v.Object))]
	if k == nil || k.gone || k.process == nil || k.stopping || k.spent {
		return
	}
	k.spent = true
	w.Note("spend", v.Name, strconv.FormatBool(told))
	if told {
		k.process.terminate()
		return
	}
	k.process.kill()
	if k.beside != nil {
		k.beside.set(nil)
	}
}

// IsSpent reports whether the program of a pod has ended for good, and is told to end at the latest.
func (w *World) IsSpent(v *server.Version) bool {
	k := w.pods[PodKey(v.Name, object.UID(v.Object))]
	return k != nil && k.spent
}

// LastOf is the last process of a pod, nil if there was none.
func (w *World) LastOf(v *server.Version) *Process {
	if k := w.pods[PodKey(v.Name, object.UID(v.Object))]; k != nil {
		return k.process
	}
	return nil
}

// Suspend suspends a process for a while.
func (w *World) Suspend(p *Process, lasts time.Duration) {
	p.Freeze()
	w.After(lasts, p.GoOn)
}

// ResumeNode has everything on a node go on.
func (w *World) ResumeNode(n *Node) {
	n.frozen = false
	for _, p := range w.Processes {
		if p.Node == n {
			p.GoOn()
		}
	}
	w.SyncNode(n)
}

// Forsake notes that a pod was declared dead while its process may run.
func (w *World) Forsake(v *server.Version) {
	if k := w.pods[PodKey(v.Name, object.UID(v.Object))]; k != nil && !k.gone && k.works() {
		k.forced = true
	}
}

// Reconnect lets a process reach the API server again; its connections have broken meanwhile.
func (w *World) Reconnect(p *Process) {
	if !p.Cut {
		return
	}
	p.Cut = false
	w.breakConnections(p)
	p.reach()
}

// startAll has everything start that did not, and work.
func (w *World) startAll() {
	w.Stuck = 0
	clear(w.Broken)
	for _, key := range slices.Sorted(maps.Keys(w.pods)) {
		if k := w.pods[key]; (k.stuck || k.spent) && !k.gone {
			k.stuck, k.spent = false, false
			w.syncSoon(k)
		}
	}
}

// Crash ends everything on a node.
func (w *World) Crash(n *Node) {
	n.Down = true
	for _, p := range w.Running() {
		if p.Node == n {
			p.kill()
		}
	}
	for _, k := range w.pods {
		if k.node != n {
			continue
		}
		if k.forgotten = true; k.beside != nil {
			k.beside.set(nil)
			k.beside.shown = identity.Identity{}
		}
	}
}

// SuspendNode suspends everything on a node.
func (w *World) SuspendNode(n *Node) {
	n.frozen = true
	for _, p := range w.Running() {
		if p.Node == n {
			p.Freeze()
		}
	}
}

// ShutDown ends all processes; each of their goroutines must end, too, or the bubble never does.
func (w *World) ShutDown() {
	var all []*Process
	w.Alone(func() {
		w.closing = true
		w.Scale(w.Owner(), 0)
		all = w.Running()
		for i, p := range all {
			if i%2 == 0 {
				p.terminate()
			}
		}
	})
	time.Sleep(time.Minute) //nolint:forbidigo // time is virtual
	w.Alone(func() {
		w.Note("end", strconv.Itoa(w.Steps))
		for _, p := range w.Running() {
			all = append(all, p)
			p.kill()
		}
		for _, k := range w.pods {
			k.gone = true
		}
	})
	for _, p := range all {
		if p.Launched {
			p.waitForEnd()
		}
	}
	w.Alone(func() { w.over = true })
	time.Sleep(15 * time.Minute) //nolint:forbidigo // time is virtual
	w.Alone(func() {
		if w.leaked != "" {
			panic("simulation: a goroutine was left behind: " + w.leaked) // the bubble would never end
		}
	})
}

// Heal ends all faults that end by themselves.
func (w *World) Heal() {
	w.Quiet = true
	w.Step("heal")
	w.disturbed = nil
	w.disturb()
	w.Down, w.Quota, w.Server.Admission = false, false, false
	clear(w.Server.Refusals)
	w.Server.Refuses = nil
	w.Server.Mutates, w.Server.MutatesLease, w.Undoes, w.Unauthorized, w.Uncollected = nil, nil, nil, false, false
	clear(w.Hangs)
	for _, n := range w.Nodes {
		if !n.Lost || !w.Profile.Strict() {
			w.BringBack(n)
		}
	}
	w.disarm()
	w.release()
	w.startAll()
	for _, p := range w.Running() {
		if !p.Node.Lost {
			p.GoOn()
			w.Reconnect(p)
		}
	}
}

// Desert has a node be lost: its pods are deleted, and it hears nothing of that.
func (w *World) Desert(n *Node) {
	n.Lost = true
	for _, v := range w.Server.Objects(object.Pods) {
		if w.NodeOf(v) == n {
			w.Server.DeletePod(v.Name, w.Profile.Grace)
		}
	}
	for _, p := range w.Running() {
		if p.Controls && p.Node == n { // its Deployment has another one start elsewhere
			p.kill()
		}
	}
}

// BringBack has a node work again.
func (w *World) BringBack(n *Node) {
	n.Down, n.Mute, n.Deaf, n.Lost = false, false, false, false
	w.ResumeNode(n)
	w.Join(n, true)
}
