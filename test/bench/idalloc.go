package main

import (
	"context"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	idcontext "github.com/idalloc/idalloc/pkg/context"
)

// idalloc is the protocol of this project, as a workload links it.
type idalloc struct{}

func (idalloc) name() string { return "idalloc" }
func (idalloc) key() string  { return assignment.DefaultKey }

func (idalloc) claim(ctx context.Context, c claimant) (id int, leave func(), err error) {
	i, err := idcontext.Start(ctx, idcontext.Options{PodName: c.pod, PodNamespace: c.namespace, Config: c.config})
	if err != nil {
		return 0, nil, err
	}
	leave = func() {
		over, cancel := context.WithCancel(ctx)
		cancel() // no time to give the slot back: the pods are about to be deleted
		_ = i.Close(over)
	}
	now, err := i.Wait(ctx)
	if err != nil {
		leave()
		return 0, nil, err
	}
	return now.ID, leave, nil
}
