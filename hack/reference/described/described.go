// Package described prints what metrics say of themselves, for programs of other modules, whose metrics the page of hack/reference has.
package described

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// Describer is the half of a prometheus.Collector that needs no values.
type Describer interface {
	Describe(to chan<- *prometheus.Desc)
}

// Main prints a line for each of idalloc's metrics: name, type, labels and meaning, with a tabulator between them.
func Main(of Describer) {
	if err := list(os.Stdout, of); err != nil {
		fmt.Fprintln(os.Stderr, "metrics:", err)
		os.Exit(1)
	}
}

// list leaves out the metrics of Go and of the process.
func list(out io.Writer, of Describer) error {
	// The text of one of the client library's descriptions, which tells nothing otherwise.
	description := regexp.MustCompile(`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"), .*variableLabels: \{([^}]*)\}\}$`)
	ch := make(chan *prometheus.Desc)
	go func() {
		defer close(ch)
		of.Describe(ch)
	}()
	var lines []string
	for d := range ch {
		m := description.FindStringSubmatch(d.String())
		if len(m) == 0 || !strings.HasPrefix(m[1], `"idalloc_`) {
			continue
		}
		name, err := strconv.Unquote(m[1])
		if err != nil {
			return err
		}
		help, err := strconv.Unquote(m[2])
		if err != nil {
			return err
		}
		lines = append(lines, strings.Join([]string{name, kind(name), m[3], help}, "\t"))
	}
	if len(lines) == 0 {
		return fmt.Errorf("no description has the form %s", description)
	}
	slices.Sort(lines)
	_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}

// kind goes by the name, because a description has no type.
func kind(name string) string {
	switch {
	case strings.HasSuffix(name, "_total"):
		return "counter"
	case strings.HasSuffix(name, "_seconds") && !strings.HasSuffix(name, "_age_seconds"):
		return "histogram"
	}
	return "gauge"
}
