package simulation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/idalloc/idalloc/test/simulation/overlay"
)

// mutant is a change of the production code that a checker must catch.
type mutant struct {
	name string
	// why says what the change does, faults is where to look for what comes of it.
	why, faults string
	// profile is what histories to play.
	profile string
	patch   string // path of the patch
}

// readMutants reads the patches of a directory.
func readMutants(dir string) ([]mutant, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	out := make([]mutant, 0, len(paths))
	for _, path := range paths {
		text, err := os.ReadFile(path) //nolint:gosec // a file of this package
		if err != nil {
			return nil, err
		}
		m := mutant{name: strings.TrimSuffix(filepath.Base(path), ".patch"), patch: path}
		for line := range strings.SplitSeq(string(text), "\n") {
			key, value, ok := strings.Cut(line, ": ")
			if !ok {
				break
			}
			switch key {
			case "Why":
				m.why = value
			case "Faults":
				m.faults = value
			case "Profile":
				m.profile = value
			}
		}
		out = append(out, m)
	}
	return out, nil
}

// changed applies the patch to copies and returns the changed files by their path below root.
func (m mutant) changed(ctx context.Context, root, dir string) (map[string]string, error) {
	patch, err := filepath.Abs(m.patch)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(patch) //nolint:gosec // a file of this package
	if err != nil {
		return nil, err
	}
	var files []string
	for line := range strings.SplitSeq(string(text), "\n") {
		if file, ok := strings.CutPrefix(line, "+++ b/"); ok {
			files = append(files, file)
		}
	}
	for _, file := range files {
		source, err := os.ReadFile(filepath.Join(root, file)) //nolint:gosec // a file of this module
		if err != nil {
			return nil, err
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o750); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, file), source, 0o600); err != nil { //nolint:gosec // a file that a patch of this package names
			return nil, err
		}
	}
	apply := exec.CommandContext(ctx, "git", "apply", patch) //nolint:gosec // a file of this package
	apply.Dir = dir
	apply.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	if out, err := apply.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("git apply %s: %w\n%s", patch, err, out)
	}
	extra := map[string]string{}
	for _, file := range files {
		source, err := os.ReadFile(filepath.Join(dir, file)) //nolint:gosec // written just now
		if err != nil {
			return nil, err
		}
		extra[filepath.Join(root, file)] = string(source)
	}
	return extra, nil
}

// caught is how a mutant was found out.
type caught struct {
	// seeds is how many were needed; 0 means that it got away.
	seeds int
	seed  uint64
	how   string
}

// row is a line of the table of mutants.
func (c caught) row(m mutant) string {
	how := c.how
	if c.seeds == 0 {
		how = "NOT CAUGHT"
	}
	const width = 110
	return fmt.Sprintf("| %-26s | %5s | %6d | %s |", m.name, strconv.Itoa(c.seeds), c.seed, how[:min(len(how), width)])
}

// hunt builds the mutant and plays at most this many seeds until a promise is broken. The program gets the flags, too.
func (m mutant) hunt(ctx context.Context, root, dir string, first uint64, most int, flags ...string) (caught, error) {
	copies := filepath.Join(dir, "source")
	if err := os.MkdirAll(copies, 0o750); err != nil {
		return caught{}, err
	}
	extra, err := m.changed(ctx, root, copies)
	if err != nil {
		return caught{}, err
	}
	program, err := overlay.Build(root, dir, extra, false)
	if err != nil {
		return caught{}, err
	}
	return catch(ctx, program, options{
		seeds: most, first: first, pass: append([]string{"-faults=" + m.faults, "-profile=" + m.profile}, flags...),
	})
}

// catch plays seeds in a program, one after the other, until a promise is broken, or the program does not survive a seed.
func catch(ctx context.Context, program string, o options) (caught, error) {
	o.workers, o.pass = 1, append([]string{"-catch"}, o.pass...)
	total, err := playOutside(ctx, program, o)
	switch {
	case ctx.Err() != nil:
		return caught{}, errors.Join(ctx.Err(), err)
	case len(total.failed) > 0:
		r := total.failed[0]
		return caught{seeds: total.histories, seed: r.Seed, how: r.Violations[0]}, nil
	case err != nil && total.histories < o.seeds:
		return caught{seeds: total.histories + 1, seed: o.first + uint64(total.histories), how: beginning(err)}, nil //nolint:gosec // small
	}
	return caught{}, err
}

// beginning is what an error says first.
func beginning(err error) string {
	lines := strings.SplitN(err.Error(), "\n", 4)
	return strings.Join(lines[:min(3, len(lines))], " ")
}

// Hunt has a program that overlay.Build built play seeds, from 1 on with all faults, until a promise is broken. env is added to its environment.
// Hunt returns how many seeds it needed and what was broken, "" for nothing.
func Hunt(ctx context.Context, program string, most int, env ...string) (seeds int, broken string, err error) {
	c, err := catch(ctx, program, options{seeds: most, first: 1, env: env})
	if err != nil && ctx.Err() == nil { // it did not survive its end
		return most, beginning(err), nil
	}
	return c.seeds, c.how, err
}
