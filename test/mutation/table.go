package main

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// row is what became of a mutant.
type row struct {
	status, by string
	took       time.Duration
}

// table has what became of each mutant, in a file if it has a name: a line is written when it is known.
type table struct {
	mu   sync.Mutex
	rows map[string]row
	file *os.File
}

// openTable reads an earlier table and goes on with it.
func openTable(name string) (*table, error) {
	t := &table{rows: map[string]row{}}
	if name == "" {
		return t, nil
	}
	var err error
	if t.file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600); err != nil { //nolint:gosec // the caller names it
		return nil, err
	}
	lines := csv.NewReader(t.file)
	for {
		f, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		const columns = 6
		if len(f) < columns {
			return nil, fmt.Errorf("%s: a line has %d columns", name, len(f))
		}
		seconds, err := strconv.ParseFloat(f[5], 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		t.rows[f[0]] = row{status: f[3], by: f[4], took: time.Duration(seconds * float64(time.Second))}
	}
}

// add notes what became of a mutant. The last line of a mutant counts.
func (t *table) add(m *mutant, r row) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows[m.name] = r
	if t.file == nil {
		return nil
	}
	w := csv.NewWriter(t.file)
	if err := w.Write([]string{m.name, m.pkg, m.file + ":" + strconv.Itoa(m.line), r.status, r.by, fmt.Sprintf("%.1f", r.took.Seconds()), m.diff()}); err != nil {
		return err
	}
	w.Flush()
	return w.Error()
}

func (t *table) close() error {
	if t.file == nil {
		return nil
	}
	return t.file.Close()
}

// report writes a table of the packages and the survivors with their changes. It returns how many survive.
func (t *table) report(out io.Writer, chosen []*mutant) int {
	byPackage := map[string]map[string]int{}
	var names []string
	var survivors []*mutant
	for _, m := range chosen {
		counts := byPackage[m.pkg]
		if counts == nil {
			counts = map[string]int{}
			byPackage[m.pkg] = counts
			names = append(names, m.pkg)
		}
		r, judged := t.rows[m.name]
		if !judged {
			counts["not run"]++
			continue
		}
		counts[r.status]++
		if r.status == surviving {
			survivors = append(survivors, m)
		}
	}
	for _, m := range survivors {
		fmt.Fprintf(out, "%s survives\n%s", m, m.diff()) //nolint:errcheck // a report
	}
	columns := []string{unit, simulated, envtest, sameCode, equivalent, surviving, "not run"}
	fmt.Fprintf(out, "\n| package | mutants | %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat(" --- |", len(columns)+2)) //nolint:errcheck // a report
	for _, name := range names {
		made := 0
		cells := make([]string, 0, len(columns))
		for _, column := range columns {
			made += byPackage[name][column]
			cells = append(cells, strconv.Itoa(byPackage[name][column]))
		}
		fmt.Fprintf(out, "| `%s` | %d | %s |\n", path.Base(name), made, strings.Join(cells, " | ")) //nolint:errcheck // a report
	}
	return len(survivors)
}

// readEquivalent reads the list of mutants that nobody can notice: a name and the reason on each line.
func readEquivalent(name string) (map[string]string, error) {
	out := map[string]string{}
	f, err := os.Open(name) //nolint:gosec // the caller names it
	if errors.Is(err, os.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		mutant, why, _ := strings.Cut(line, " ")
		if why = strings.TrimSpace(why); why == "" {
			return nil, fmt.Errorf("%s:%d: %s has no reason", name, n, mutant)
		}
		if out[mutant] != "" {
			return nil, fmt.Errorf("%s:%d: %s is there twice", name, n, mutant)
		}
		out[mutant] = why
	}
	return out, lines.Err()
}

// stale returns the names of the list that are no mutants of the packages that are looked at.
func stale(listed map[string]string, all []*mutant, p *program) []string {
	exist := map[string]bool{}
	for _, m := range all {
		exist[m.name] = true
	}
	var out []string
	for name := range listed {
		pkg, _, _ := strings.Cut(name, ".")
		if !exist[name] && slices.ContainsFunc(p.targets, func(target string) bool { return path.Base(target) == pkg }) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
