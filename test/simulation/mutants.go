package simulation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/idalloc/idalloc/test/simulation/overlay"
)

// mutant is a change of the production code that a checker must catch.
type mutant struct {
	name string
	// why says what the change does, faults is where to look for what comes of it.
	why, faults string
	// profile is what histories to play.
	profile string
	edits   []edit
}

// edit replaces a text that a file has once.
type edit struct{ file, from, to string }

// parseMutants reads mutants.txt. Each mutant begins with a line "# name". Lines "why: ", "faults: ", "profile: " and "file: " follow, and what
// is replaced in that file: lines that begin with "-" by lines that begin with "+".
func parseMutants(text string) (all []mutant, err error) {
	file, last := "", byte(0)
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		key, value, _ := strings.Cut(line, ": ")
		if name, begins := strings.CutPrefix(line, "# "); begins {
			all, last = append(all, mutant{name: name}), 0
			continue
		}
		if line == "" {
			last = 0
			continue
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("no mutant begins before %q", line)
		}
		m := &all[len(all)-1]
		switch {
		case line[0] == '-' || line[0] == '+':
			if last != line[0] && last != '-' {
				m.edits = append(m.edits, edit{file: file})
			}
			e := &m.edits[len(m.edits)-1]
			if last = line[0]; last == '-' {
				e.from += line[1:] + "\n"
			} else {
				e.to += line[1:] + "\n"
			}
		case key == "why":
			m.why = value
		case key == "faults":
			m.faults = value
		case key == "profile":
			m.profile = value
		case key == "file":
			file, last = value, 0
		default:
			return nil, fmt.Errorf("%s: what is %q?", m.name, line)
		}
	}
	return all, nil
}

// changed returns the changed files by their path below root.
func (m mutant) changed(root string) (map[string]string, error) {
	extra := map[string]string{}
	for _, e := range m.edits {
		path := filepath.Join(root, e.file)
		if extra[path] == "" {
			source, err := os.ReadFile(path) //nolint:gosec // a file of this module
			if err != nil {
				return nil, err
			}
			extra[path] = string(source)
		}
		if n := strings.Count(extra[path], e.from); n != 1 || e.from == "" {
			return nil, fmt.Errorf("%s has %d times, not once:\n%s", e.file, n, e.from)
		}
		extra[path] = strings.Replace(extra[path], e.from, e.to, 1)
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

// endless is how long a history takes that never ends. Others take well under ten seconds.
const endless = 2 * time.Minute

// huntIn builds the mutant in dir and plays at most this many seeds until a promise is broken. The program gets the flags, too.
func (s *Suite) huntIn(ctx context.Context, m mutant, root, dir string, flags ...string) (caught, error) {
	extra, err := m.changed(root)
	if err != nil {
		return caught{}, err
	}
	program, err := overlay.BuildTests(".", s.Package, dir, extra, false)
	if err != nil {
		return caught{}, err
	}
	return catch(ctx, program, options{
		seeds: s.mutantSeeds, first: s.first, patience: endless, pass: append([]string{"-faults=" + m.faults, "-profile=" + m.profile, "-proof=" + strconv.FormatBool(s.proof)}, flags...),
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
