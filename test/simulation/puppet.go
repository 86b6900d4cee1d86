package simulation

import (
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// puppet returns a process of a new pod that runs no production code: it acts as it is told. It is for tests of those who look at
// a world.
func (w *world) puppet(name string) *process {
	v := w.server.Put(object.KindOf(object.Pods), object.Object{
		object.Metadata: object.Object{"name": name, "labels": object.Object{appLabel: ownerName}}, "spec": object.Object{}, "status": object.Object{"phase": "Running"},
	}, server.Writer{Manager: kubelet})
	p := w.newProcess(name, object.UID(v.Object), 1, w.nodes[0])
	p.launched = true
	k := w.pods[podKey(p.pod, p.uid)]
	k.process, k.runs = p, 1
	w.processes = append(w.processes, p)
	return p
}

// act has a puppet act under an identity, nil for none.
func (p *process) act(id *identity.Identity) { p.working = id }
