package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/idalloc/idalloc/test/simulation"
	"github.com/idalloc/idalloc/test/simulation/overlay"
)

// simulated plays histories with the mutant, and says what was broken, "" for nothing. The program as it is has to pass first.
func (j *judge) simulated(ctx context.Context, dir string, m *mutant) (how string, err error) {
	if j.simulate == 0 || !j.simulates(m.pkg) {
		return "", nil
	}
	all, err := j.simulator(ctx, m.pkg)
	if err != nil {
		return "", err
	}
	if m.number > 0 {
		return j.histories(ctx, all, switchVariable+"="+strconv.Itoa(m.number))
	}
	program, err := overlay.Build(j.root, dir, map[string]string{m.path: string(m.text())}, false)
	if err != nil {
		return "", err
	}
	return j.histories(ctx, program)
}

// simulator builds the simulator with all mutants of a package when it is first asked for, and sees it pass with none of them.
func (j *judge) simulator(ctx context.Context, pkg string) (string, error) {
	j.simulating.Lock()
	defer j.simulating.Unlock()
	if program := j.simulators[pkg]; program != "" {
		return program, nil
	}
	var all []*mutant
	for _, m := range j.mutants {
		if m.pkg == pkg {
			all = append(all, m)
		}
	}
	dir, err := os.MkdirTemp(j.dir, "simulator")
	if err != nil {
		return "", err
	}
	program, err := overlay.Build(j.root, dir, switchFiles(all), false)
	if err != nil {
		return "", err
	}
	how, err := j.histories(ctx, program)
	if err == nil && how != "" {
		err = fmt.Errorf("the simulation fails as it is: %s", how)
	}
	if err != nil {
		return "", err
	}
	if j.simulators == nil {
		j.simulators = map[string]string{}
	}
	j.simulators[pkg] = program
	return program, nil
}

// simulates reports whether the simulator runs a package.
func (j *judge) simulates(pkg string) bool {
	for path, l := range j.program.packages {
		if strings.HasSuffix(path, "/test/simulation") {
			return l.dependsOn(pkg)
		}
	}
	return false
}

// histories plays the first one alone: one that does not end, as many mutants' do not, is not waited for long.
func (j *judge) histories(ctx context.Context, program string, env ...string) (string, error) {
	const one, all = 30 * time.Second, 10 * time.Minute // a history takes a few hundredths of a second
	how, err := j.hunt(ctx, program, 1, one, env)
	if how != "" || err != nil || j.simulate == 1 {
		return how, err
	}
	return j.hunt(ctx, program, j.simulate, all, env)
}

func (j *judge) hunt(ctx context.Context, program string, most int, patience time.Duration, env []string) (string, error) {
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	seeds, what, err := simulation.Hunt(ctx, program, most, env...)
	switch {
	case outer.Err() != nil:
		return "", outer.Err()
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "time", nil
	case err != nil || what == "":
		return "", err
	}
	return fmt.Sprintf("seed %d: %s", seeds, what), nil
}

// specs runs specs on the local control plane; what they build gets the overlay too.
func (j *judge) specs(ctx context.Context, overlay string) (string, error) {
	if j.envtest == "" {
		return "", nil
	}
	const limit = "-timeout=20m"
	test := j.command(ctx, "test", "-count=1", "-vet=off", limit, "./test/envtest/allocation", "-ginkgo.focus="+j.envtest, "-ginkgo.fail-fast")
	test.Env = append(test.Environ(), "GOFLAGS=-overlay="+overlay)
	group(test)
	out, err := test.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err == nil:
		return "", nil
	}
	for line := range strings.SplitSeq(string(out), "\n") {
		if _, spec, ok := strings.Cut(line, "[FAIL] "); ok {
			return spec, nil
		}
	}
	return "exit", nil
}
