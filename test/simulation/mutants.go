package simulation

import (
	"context"
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
	program, err := overlay.Build(dir, extra, false)
	if err != nil {
		return caught{}, err
	}
	return catch(ctx, program, options{
		seeds: most, first: first, pass: append([]string{"-faults=" + m.faults, "-profile=" + m.profile}, flags...),
	})
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
