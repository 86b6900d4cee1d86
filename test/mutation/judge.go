package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// judge finds out what notices a mutant.
type judge struct {
	config

	program *program
	dir     string
	listed  map[string]string
	table   *table
	out     io.Writer

	measuring sync.Mutex
	measured  map[string]*suite

	compiling sync.Mutex
	compiled  map[string]map[string]string // by package: the functions as they are

	simulating sync.Mutex
	simulator  bool // that it passes as it is has been seen
}

// What becomes of a mutant.
const (
	notCompiling = "not compiling"
	unit         = "unit"
	sameCode     = "same code"
	simulated    = "simulation"
	envtest      = "envtest"
	equivalent   = "equivalent"
	surviving    = "surviving"
)

// all judges the mutants that the table does not have yet.
func (j *judge) all(ctx context.Context, chosen []*mutant) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began := time.Now()
	work := make(chan *mutant)
	var running sync.WaitGroup
	for i := range max(1, j.workers) {
		dir := filepath.Join(j.dir, strconv.Itoa(i))
		if err := os.Mkdir(dir, 0o750); err != nil {
			return err
		}
		running.Go(func() {
			for m := range work {
				if err := j.one(ctx, dir, m); err != nil && ctx.Err() == nil {
					cancel(err)
				}
			}
		})
	}
	for _, m := range chosen {
		if ctx.Err() != nil || (j.budget > 0 && time.Since(began) > j.budget) {
			break
		}
		if row, done := j.table.rows[m.name]; done && (row.status != surviving || !j.again) && j.listed[m.name] == "" {
			continue
		}
		select {
		case work <- m:
		case <-ctx.Done():
		}
	}
	close(work)
	running.Wait()
	return context.Cause(ctx)
}

func (j *judge) one(ctx context.Context, dir string, m *mutant) error {
	began := time.Now()
	status, by, err := j.status(ctx, dir, m)
	if err != nil {
		return fmt.Errorf("%s: %w", m, err)
	}
	return j.table.add(m, row{status: status, by: by, took: time.Since(began)})
}

// status judges one mutant, the cheapest first.
func (j *judge) status(ctx context.Context, dir string, m *mutant) (status, by string, err error) {
	if m.noCompile {
		return notCompiling, "", nil
	}
	if why := j.listed[m.name]; why != "" {
		return equivalent, why, nil
	}
	overlay, err := m.overlay(dir)
	if err != nil {
		return "", "", err
	}
	compared := false
	for _, l := range j.suites(m.pkg) {
		if !compared && l.ImportPath != m.pkg {
			compared = true
			if same, err := j.sameCode(ctx, m, overlay); same || err != nil {
				return sameCode, "", err
			}
		}
		s, err := j.suite(ctx, l)
		if err != nil {
			return "", "", err
		}
		if !s.covers(m) {
			continue
		}
		how, err := s.play(ctx, j, dir, overlay)
		if broken := (*doesNotBuildError)(nil); errors.As(err, &broken) {
			return notCompiling, "", nil
		}
		if err != nil {
			return "", "", err
		}
		if how != "" {
			return unit, filepath.Base(s.pkg.ImportPath) + " " + how, nil
		}
	}
	if !compared {
		if same, err := j.sameCode(ctx, m, overlay); same || err != nil {
			return sameCode, "", err
		}
	}
	if how, err := j.simulated(ctx, dir, m); how != "" || err != nil {
		return simulated, how, err
	}
	if how, err := j.specs(ctx, overlay); how != "" || err != nil {
		return envtest, how, err
	}
	return surviving, "", nil
}
