package main

import (
	"context"
	"time"

	idcontext "github.com/idalloc/idalloc/pkg/context"
	"github.com/idalloc/idalloc/test/overlap"
)

const probeInterval = 5 * time.Millisecond

// probe logs the id that the work is done under, for a check that no other pod ever worked under the
// same id at the same time. A workload does not need this. The zero probe logs nothing.
type probe struct{ writer *overlap.Writer }

func newProbe(dir, pod, uid string) (probe, error) {
	if dir == "" {
		return probe{}, nil
	}
	w, err := overlap.NewWriter(dir, pod, uid)
	if err != nil {
		return probe{}, err
	}
	return probe{w}, nil
}

// sample is called from the function that works under id, so what it logs is in use by definition. In
// strict mode it asks between its two looks at the clock, as the work would, whether it still may.
func (p probe) sample(ctx context.Context, id idcontext.Identity) error {
	if p.writer == nil {
		return nil
	}
	return p.writer.Sample(func() (int, int, int64) {
		if fenced(ctx) {
			return overlap.None, 0, 0
		}
		return id.ID, id.Count, id.Epoch
	})
}

// none logs that the work under the last id has ended.
func (p probe) none() error {
	if p.writer == nil {
		return nil
	}
	return p.writer.Sample(func() (int, int, int64) { return overlap.None, 0, 0 })
}

func (p probe) close() error {
	if p.writer == nil {
		return nil
	}
	return p.writer.Close()
}
