package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

// judge finds out what notices a mutant.
type judge struct {
	config

	program *program
	mutants []*mutant
	dir     string
	listed  map[string]string
	table   *table
	out     io.Writer

	measuring sync.Mutex
	measured  map[string]*suite

	compiling sync.Mutex
	compiled  map[string]map[string]string // by package: the functions as they are

	switching sync.Mutex
	programs  map[string]*switchedProgram // by package

	simulating sync.Mutex
	simulators map[string]string // by package: the simulator with all its switched mutants, "" where there is none
}

// switchedProgram is the suite of a package with all its switched mutants.
type switchedProgram struct {
	dir     string // "" where the suite does not pass or build with them
	program string
	files   map[string]string
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
	todo := j.todo(chosen)
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
	for _, m := range todo {
		if ctx.Err() != nil || (j.budget > 0 && time.Since(began) > j.budget) {
			break
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

// todo returns the mutants that the table does not have yet, those first that need no program of their own: a limit of time is
// for as many as possible.
func (j *judge) todo(chosen []*mutant) []*mutant {
	out := slices.DeleteFunc(slices.Clone(chosen), func(m *mutant) bool {
		row, done := j.table.rows[m.name]
		return done && (row.status != surviving || !j.again) && j.listed[m.name] == ""
	})
	slices.SortStableFunc(out, func(a, b *mutant) int { return cmp.Compare(min(b.number, 1), min(a.number, 1)) })
	return out
}

func (j *judge) one(ctx context.Context, dir string, m *mutant) error {
	began := time.Now()
	status, by, err := j.status(ctx, dir, m)
	if err != nil {
		return fmt.Errorf("%s: %w", m, err)
	}
	return j.table.add(m, row{status: status, by: by, took: time.Since(began)})
}

// play runs a suite with a mutant: its package's own in the program that has them all, if it can be switched.
func (j *judge) play(ctx context.Context, s *suite, m *mutant, dir, overlay string) (how string, err error) {
	if m.number > 0 && s.pkg.ImportPath == m.pkg {
		p, err := j.switchedSuite(ctx, s, m.pkg)
		if err != nil {
			return "", err
		}
		if p.program != "" {
			return s.play(ctx, p.program, switchVariable+"="+strconv.Itoa(m.number))
		}
	}
	program, err := s.build(ctx, j, dir, overlay)
	if err != nil {
		return "", err
	}
	return s.play(ctx, program)
}

// switchedSuite builds a package's suite with all its mutants when it is first asked for, and sees it pass with none of them.
func (j *judge) switchedSuite(ctx context.Context, s *suite, pkg string) (*switchedProgram, error) {
	j.switching.Lock()
	defer j.switching.Unlock()
	if p := j.programs[pkg]; p != nil {
		return p, nil
	}
	p, err := j.switchedFiles(pkg)
	if err != nil {
		return nil, err
	}
	overlay, err := writeOverlay(p.dir, p.files)
	if err != nil {
		return nil, err
	}
	program, err := s.build(ctx, j, p.dir, overlay)
	if broken := (*doesNotBuildError)(nil); errors.As(err, &broken) {
		fmt.Fprintf(j.out, "%s: one at a time, because all together: %v\n", pkg, err) //nolint:errcheck // a report
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	how, err := s.play(ctx, program)
	if err != nil {
		return nil, err
	}
	if how != "" {
		fmt.Fprintf(j.out, "%s: one at a time, because %s notices the switches\n", pkg, how) //nolint:errcheck // a report
		return p, nil
	}
	p.program = program
	return p, nil
}

// switchedFiles returns the files of a package with all its mutants. It is called with the lock held.
func (j *judge) switchedFiles(pkg string) (*switchedProgram, error) {
	var all []*mutant
	for _, m := range j.mutants {
		if m.pkg == pkg {
			all = append(all, m)
		}
	}
	dir, err := os.MkdirTemp(j.dir, "switched")
	if err != nil {
		return nil, err
	}
	p := &switchedProgram{dir: dir, files: switchFiles(all)}
	if j.programs == nil {
		j.programs = map[string]*switchedProgram{}
	}
	j.programs[pkg] = p
	return p, nil
}

// status judges one mutant, the cheapest first.
func (j *judge) status(ctx context.Context, dir string, m *mutant) (status, by string, err error) {
	if m.noCompile {
		return notCompiling, "", nil
	}
	if why := j.listed[m.name]; why != "" {
		return equivalent, why, nil
	}
	overlay, err := writeOverlay(dir, map[string]string{m.path: string(m.text())})
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
		how, err := j.play(ctx, s, m, dir, overlay)
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
