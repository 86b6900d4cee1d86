package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// config is what the flags say.
type config struct {
	root       string // of the module
	packages   []string
	functions  string
	shard      shard
	sample     int
	seed       string
	budget     time.Duration
	table      string
	again      bool
	equivalent string
	simulate   int
	envtest    string
	workers    int
	list       bool
	strict     bool
	skip       string
	own        bool
	checks     int
}

// shard is one of so many parts.
type shard struct{ part, of int }

// Set implements flag.Value.
func (s *shard) Set(text string) error {
	part, of, ok := strings.Cut(text, "/")
	var err error
	if s.part, err = strconv.Atoi(part); !ok || err != nil {
		return fmt.Errorf("%q is not i/n", text)
	}
	if s.of, err = strconv.Atoi(of); err != nil || s.part < 1 || s.part > s.of {
		return fmt.Errorf("%q is not i/n with 1 <= i <= n", text)
	}
	return nil
}

// String implements flag.Value.
func (s *shard) String() string { return fmt.Sprintf("%d/%d", s.part, s.of) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := command(ctx, os.Args[1:], os.Stdout)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(2) //nolint:gocritic // stop has nothing left to do
	case !ok:
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string, out io.Writer) (ok bool, err error) {
	c := config{shard: shard{part: 1, of: 1}}
	flags := flag.NewFlagSet("mutation", flag.ContinueOnError)
	flags.SetOutput(out)
	var packages string
	flags.StringVar(&c.root, "C", "", "the root of the module to change; without it idalloc's, at or above the working directory")
	flags.StringVar(&packages, "packages", ".,./pkg/...,./internal/...,./cmd/idalloc", "what to change: patterns of go list below the root, separated by commas")
	flags.StringVar(&c.functions, "only", "", "only mutants whose name fits this regular expression")
	flags.Var(&c.shard, "shard", "only part i of n, as i/n")
	flags.IntVar(&c.sample, "sample", 0, "only so many of them, drawn with -seed; 0 is all")
	flags.StringVar(&c.seed, "seed", "1", "any text; tree is a hash of the packages' sources")
	flags.DurationVar(&c.budget, "for", 0, "begin no mutant after this time; 0 is no limit")
	flags.StringVar(&c.table, "table", "", "write a line of CSV for each mutant into this file as soon as it is judged, and skip those that it already has")
	flags.BoolVar(&c.again, "again", false, "with -table: judge survivors of the table again")
	flags.StringVar(&c.equivalent, "equivalent", "test/mutation/equivalent.txt", "the list of mutants that nobody can notice, below the root")
	flags.IntVar(&c.simulate, "simulate", 0, "play so many histories with what the unit tests do not notice")
	flags.StringVar(&c.envtest, "envtest", "", "run the specs of test/envtest/allocation that this regular expression fits with what is left")
	flags.IntVar(&c.workers, "workers", runtime.GOMAXPROCS(0), "how many mutants are judged at once")
	flags.BoolVar(&c.list, "list", false, "only list the mutants")
	flags.BoolVar(&c.strict, "strict", false, "exit with 1 if a mutant survives that is not in the list")
	flags.StringVar(&c.skip, "skip", "^TestTheBinary", "leave these tests out: a regular expression")
	flags.BoolVar(&c.own, "own", false, "run only the tests of the package itself, not those of packages that import it")
	flags.IntVar(&c.checks, "checks", 100, "try so many random cases of each property")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	c.packages = strings.Split(packages, ",")
	if c.root == "" {
		c.root, err = findRoot()
	} else {
		c.root, err = filepath.Abs(c.root)
	}
	if err != nil {
		return false, err
	}
	return run(ctx, c, out)
}

// findRoot returns the directory of idalloc's go.mod. "go run" starts this program in its own module's directory, below that root; who has
// built it starts it anywhere in the tree.
func findRoot() (string, error) {
	const module = "module github.com/idalloc/idalloc"
	working, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := working; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod")) //nolint:gosec // the name is fixed
		if err == nil && slices.Contains(strings.Split(string(text), "\n"), module) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod at or above %s says %q: name the module with -C", working, module)
		}
	}
}

// run makes the mutants, judges them and reports. It is not ok where a mutant survives and the flags forbid that.
func run(ctx context.Context, c config, out io.Writer) (ok bool, err error) {
	p, err := load(ctx, c.root, c.packages)
	if err != nil {
		return false, err
	}
	all, err := p.mutants(c.functions)
	if err != nil {
		return false, err
	}
	listed, err := readEquivalent(filepath.Join(c.root, c.equivalent))
	if err != nil {
		return false, err
	}
	seed := c.seed
	if seed == "tree" {
		seed = p.hash()
	}
	chosen := choose(all, c.shard, c.sample, seed)
	fmt.Fprintf(out, "%d mutants, %d of them chosen (shard %s, seed %s)\n", len(all), len(chosen), c.shard.String(), seed) //nolint:errcheck // a report
	if c.list {
		for _, m := range chosen {
			if m.noCompile {
				continue
			}
			fmt.Fprintf(out, "%s:%d\t%s\n%s", m.file, m.line, m.name, m.diff()) //nolint:errcheck // a report
		}
		return true, nil
	}
	t, err := openTable(c.table)
	if err != nil {
		return false, err
	}
	defer t.close() //nolint:errcheck // each line was flushed
	dir, err := os.MkdirTemp("", "mutation")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
	j := judge{config: c, program: p, mutants: all, dir: dir, listed: listed, table: t, out: out}
	if err := j.all(ctx, chosen); err != nil {
		return false, err
	}
	survivors := t.report(out, chosen)
	if len(c.functions) == 0 {
		for _, name := range stale(listed, all, p) {
			fmt.Fprintf(out, "%s lists %s, which is no mutant any more\n", c.equivalent, name) //nolint:errcheck // a report
		}
	}
	return survivors == 0 || !c.strict, nil
}
