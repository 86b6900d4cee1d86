package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/test/overlap"
)

const probeInterval = 5 * time.Millisecond

// probe logs what the files say, for a check that no other pod ever said the same at the same time.
// A workload does not need this.
func probe(ctx context.Context, dir, probes string) (err error) {
	name := os.Getenv("POD_NAME")
	if name == "" {
		if name, err = os.Hostname(); err != nil {
			return err
		}
	}
	w, err := overlap.NewWriter(probes, name, os.Getenv("POD_UID"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	for {
		var failed error
		err := w.Sample(func() (id, count int, epoch int64) {
			now, err := identity.Read(dir)
			if errors.Is(err, fs.ErrNotExist) {
				return overlap.None, 0, 0
			}
			failed = err
			return now.ID, now.Count, now.Epoch
		})
		if err := errors.Join(err, failed); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
