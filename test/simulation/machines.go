package simulation

import (
	"maps"
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

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
	for _, st := range w.server.Streams() {
		if st.Client == p {
			st.End(server.ErrCut)
		}
	}
}

func (w *world) kill(p *process) {
	p.kill()
	w.kubeletSees(p.pod, p.uid)
}

func (w *world) suspend(p *process, lasts time.Duration) {
	p.freeze()
	w.After(lasts, p.goOn)
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

// forsake notes that a pod was declared dead while its process may run.
func (w *world) forsake(v *server.Version) {
	if k := w.pods[podKey(v.Name, object.UID(v.Object))]; k != nil && !k.gone && k.works() {
		k.forced = true
	}
}

// reconnect lets a process reach the API server again; its connections have broken meanwhile.
func (w *world) reconnect(p *process) {
	if !p.cut {
		return
	}
	p.cut = false
	w.breakConnections(p)
	p.reach()
}

// startAll has everything start that did not, and work.
func (w *world) startAll() {
	w.stuck = 0
	clear(w.broken)
	for _, key := range slices.Sorted(maps.Keys(w.pods)) {
		if k := w.pods[key]; k.stuck && !k.gone {
			k.stuck = false
			w.syncSoon(k)
		}
	}
}

// crash ends everything on a node.
func (w *world) crash(n *node) {
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
}

// suspendNode suspends everything on a node.
func (w *world) suspendNode(n *node) {
	n.frozen = true
	for _, p := range w.running() {
		if p.node == n {
			p.freeze()
		}
	}
}
