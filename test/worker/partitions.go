package main

import (
	"context"
	"errors"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/overlap"
)

// partitionInterval is how often the work on one partition logs what it shows. A pod works on many.
const partitionInterval = 250 * time.Millisecond

// workOnPartitions works on partitions through RunPartitions. The log of each is a file of its own, in which the partition takes
// the place of the id. It is ready while the pod has an id.
func workOnPartitions(ctx context.Context, dir, pod string) error {
	s, err := environment()
	if err != nil {
		return err
	}
	var ready atomic.Bool
	if err := serveReadiness(ctx, s.address, &ready); err != nil {
		return err
	}
	s.Changed = func(id identity.Identity) { ready.Store(id.Assigned()) }
	return idalloc.RunPartitions(ctx, s.Options, func(ctx context.Context, p idalloc.Partition) error {
		w, err := overlap.NewWriter(dir, pod+"#"+strconv.Itoa(p.Number), os.Getenv("POD_UID"))
		if err != nil {
			return err
		}
		w.Interval = partitionInterval
		return errors.Join(act(ctx, w, p.Number, p.Count, p.Token), w.Close())
	})
}
