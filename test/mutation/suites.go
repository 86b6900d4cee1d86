package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// suite is the tests of one package.
type suite struct {
	pkg     *listedPackage
	flags   []string
	took    time.Duration // processor time, of the program as it is
	covered map[string][]span
}

// span is a range of lines that a suite runs.
type span struct{ from, to int }

// covers reports whether the suite runs any line of the change. What stands outside of functions is not counted by go's coverage.
func (s *suite) covers(m *mutant) bool {
	if m.function == "package" {
		return true
	}
	return slices.ContainsFunc(s.covered[m.pkg+"/"+m.base], func(c span) bool { return c.from <= m.last && m.reached <= c.to })
}

// suites returns the suites that can notice a change of the target: its own first, then those of small programs.
func (j *judge) suites(target string) []*listedPackage {
	var out []*listedPackage
	for path, l := range j.program.packages {
		if !l.Standard && len(l.TestGoFiles)+len(l.XTestGoFiles) > 0 && j.isUnit(path) && j.tests(l, target) && (!j.own || path == target) {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b *listedPackage) int {
		switch {
		case a.ImportPath == target:
			return -1
		case b.ImportPath == target:
			return 1
		}
		return cmp.Or(cmp.Compare(len(a.Deps), len(b.Deps)), cmp.Compare(a.ImportPath, b.ImportPath))
	})
	return out
}

// suite measures a suite when it is first asked for.
func (j *judge) suite(ctx context.Context, l *listedPackage) (*suite, error) {
	j.measuring.Lock()
	defer j.measuring.Unlock()
	if s := j.measured[l.ImportPath]; s != nil {
		return s, nil
	}
	s, err := j.measure(ctx, l)
	if err != nil {
		return nil, err
	}
	if j.measured == nil {
		j.measured = map[string]*suite{}
	}
	j.measured[l.ImportPath] = s
	return s, nil
}

// isUnit reports whether a package's tests need nothing but themselves.
func (j *judge) isUnit(path string) bool {
	return !strings.Contains(path, "/test/") && !strings.Contains(path, "/hack/")
}

// tests reports whether a package, or what its tests import, depends on the target.
func (j *judge) tests(l *listedPackage, target string) bool {
	return l.dependsOn(target) || slices.ContainsFunc(slices.Concat(l.TestImports, l.XTestImports), func(path string) bool {
		imported := j.program.packages[path]
		return imported != nil && imported.dependsOn(target)
	})
}

// measure runs a suite once, as the program is, and notes how long it takes and what it covers.
func (j *judge) measure(ctx context.Context, l *listedPackage) (*suite, error) {
	s := &suite{pkg: l, covered: map[string][]span{}, flags: []string{"-test.short", "-test.failfast", "-test.skip=" + j.skip}}
	if slices.ContainsFunc(slices.Concat(l.TestImports, l.XTestImports), func(path string) bool { return path == "pgregory.net/rapid" }) {
		const short = 5 // rapid tries a fifth of the cases with -test.short
		s.flags = append(s.flags, "-rapid.seed=1", "-rapid.nofailfile", "-rapid.shrinktime=1ms", "-rapid.checks="+strconv.Itoa(short*j.checks))
	}
	program, profile := filepath.Join(j.dir, "measure.test"), filepath.Join(j.dir, "measure.cover")
	build := []string{"test", "-c", "-vet=off", "-o", program, "-cover", "-coverpkg=" + strings.Join(j.program.targets, ","), l.ImportPath}
	if out, err := j.command(ctx, build...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(build, " "), err, out)
	}
	const long = 5 * time.Minute
	r := start(ctx, program, l.Dir, append([]string{"-test.coverprofile=" + profile}, s.flags...), limits{wall: long, processor: long})
	if r.how != "" {
		return nil, fmt.Errorf("the tests of %s fail as they are: %s\n%s", l.ImportPath, r.how, r.out)
	}
	s.took = r.took
	text, err := os.ReadFile(profile) //nolint:gosec // written just now
	if errors.Is(err, os.ErrNotExist) {
		return s, nil // no statements are covered
	}
	if err != nil {
		return nil, err
	}
	err = s.read(bytes.NewReader(text))
	return s, err
}

// read reads the spans that were run from a coverage profile.
func (s *suite) read(profile io.Reader) error {
	line := regexp.MustCompile(`^(.+):(\d+)\.\d+,(\d+)\.\d+ \d+ (\d+)$`)
	lines := bufio.NewScanner(profile)
	for lines.Scan() {
		f := line.FindStringSubmatch(lines.Text())
		const fields = 5
		if len(f) != fields || f[4] == "0" {
			continue
		}
		from, err := strconv.Atoi(f[2])
		if err != nil {
			return err
		}
		to, err := strconv.Atoi(f[3])
		if err != nil {
			return err
		}
		s.covered[f[1]] = append(s.covered[f[1]], span{from, to})
	}
	return lines.Err()
}

// command is a go command in the module.
func (j *judge) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "go", args...) //nolint:gosec // arguments of ours
	c.Dir = j.root
	return c
}

// build builds the suite with the overlay.
func (s *suite) build(ctx context.Context, j *judge, dir, overlay string) (program string, err error) {
	program = filepath.Join(dir, "suite.test")
	build := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", program, s.pkg.ImportPath}
	if out, err := j.command(ctx, build...).CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", &doesNotBuildError{string(out)}
	}
	return program, nil
}

// play runs a program that build has built. It returns what noticed, "" for nobody.
func (s *suite) play(ctx context.Context, program string, env ...string) (how string, err error) {
	const patience = 3 * time.Second
	limit := 5*s.took + patience
	r := start(ctx, program, s.pkg.Dir, s.flags, limits{wall: 6*limit + time.Minute, processor: limit}, env...)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	return r.how, nil
}

type doesNotBuildError struct{ out string }

func (e *doesNotBuildError) Error() string { return "does not build: " + e.out }

// limits are what a run may use. The time on the clock is long, since others may use the processors.
type limits struct{ wall, processor time.Duration }

// result is how a test program ended.
type result struct {
	how  string // what noticed, "" if it passed
	out  string
	took time.Duration // processor time
}

// start runs a test program in its package's directory. It blocks until the program has ended.
func start(ctx context.Context, program, dir string, args []string, l limits, env ...string) result {
	ctx, cancel := context.WithTimeout(ctx, l.wall)
	defer cancel()
	c := exec.CommandContext(ctx, program, args...) //nolint:gosec // built just now
	c.Dir = dir
	c.Env = append(os.Environ(), env...)
	c.WaitDelay = time.Second
	var mu sync.Mutex
	var out bytes.Buffer
	w := writer(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		const much = 1 << 20
		if out.Len() < much {
			out.Write(p)
		}
		return len(p), nil
	})
	c.Stdout, c.Stderr = w, w
	group(c)
	err := c.Start()
	if err == nil {
		err = limit(c.Process.Pid, l.processor)
		if waited := c.Wait(); err == nil || waited != nil {
			err = waited
		}
	}
	mu.Lock()
	defer mu.Unlock()
	r := result{out: out.String()}
	if c.ProcessState != nil {
		r.took = c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	}
	switch {
	case err == nil:
	case ctx.Err() != nil || r.took >= l.processor:
		r.how = "time"
	default:
		r.how = firstFailure(r.out)
	}
	return r
}

type writer func([]byte) (int, error)

// Write implements io.Writer.
func (w writer) Write(p []byte) (int, error) { return w(p) }

// firstFailure is the name of the first test that failed, or how the program ended.
func firstFailure(out string) string {
	if f := regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`).FindStringSubmatch(out); f != nil {
		return f[1]
	}
	if f := regexp.MustCompile(`(?m)^(panic|fatal error): .*`).FindString(out); f != "" {
		return f[:min(len(f), 100)]
	}
	return "exit"
}
