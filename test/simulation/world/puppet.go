package world

import (
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// Puppet returns a process of a new pod that runs no production code: it acts as it is told. It is for tests of those who look at
// a world.
func (w *World) Puppet(name string) *Process {
	v := w.Server.Put(object.KindOf(object.Pods), object.Object{
		object.Metadata: object.Object{"name": name, labels: object.Object{AppLabel: OwnerName}}, "spec": object.Object{}, "status": object.Object{"phase": "Running"},
	}, server.Writer{Manager: kubelet})
	p := w.newProcess(name, object.UID(v.Object), 1, w.Nodes[0])
	p.Launched = true
	k := w.pods[PodKey(p.Pod, p.UID)]
	k.process, k.runs = p, 1
	w.Processes = append(w.Processes, p)
	return p
}

// Act has a puppet act under an identity, nil for none.
func (p *Process) Act(id *identity.Identity) { p.working = id }
