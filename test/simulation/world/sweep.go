package world

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/gc"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

func (p *Process) sweep(ctx context.Context) {
	s, err := store.New(&rest.Config{Host: "http://simulation.invalid", QPS: -1, Transport: transport{p: p}}, p.clock)
	if err != nil {
		panic("simulation: " + err.Error())
	}
	k := object.KindOf(p.w.Profile.Resource)
	ref := kinds.Ref{APIVersion: k.APIVersion, Kind: k.Name, Namespace: server.Namespace, Name: OwnerName}
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 10 * time.Second}
	_, _ = gc.Sweep(ctx, s, ref, backoff, false) // what a person would read
}

// Sweep runs "idalloc gc" on a machine: a process without a pod, whose requests fare like all others.
func (w *World) Sweep(name string, on *Node) {
	p := w.newProcess(name, "", nil, 1, on)
	w.Processes = append(w.Processes, p)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	p.cancel, p.Launched = cancel, true
	go func() {
		defer close(p.done)
		defer cancel()
		p.sweep(ctx)
		w.Alone(func() { p.finished(nil) }) //nolint:contextcheck // the world does not wait for it
	}()
}
