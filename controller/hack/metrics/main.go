// Metrics prints a line for each of the controller's metrics: name, type, labels and meaning, with a tabulator between them. The page that
// hack/reference makes has them.
package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idalloc/idalloc/controller/internal/executor"
)

func main() {
	if err := list(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "metrics:", err)
		os.Exit(1)
	}
}

// description matches the text of one of the client library's descriptions, which tells nothing otherwise.
var description = regexp.MustCompile(`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"), .*variableLabels: \{([^}]*)\}\}$`)

// list leaves out the metrics of Go and of the process.
func list(out io.Writer) error {
	found := described{}
	if _, err := executor.NewMetrics(&found, time.Now); err != nil {
		return err
	}
	var lines []string
	for _, d := range found {
		m := description.FindStringSubmatch(d.String())
		if m == nil {
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
		if !strings.HasPrefix(name, "idalloc_") {
			continue
		}
		kind := "gauge"
		switch {
		case strings.HasSuffix(name, "_total"):
			kind = "counter"
		case strings.HasSuffix(name, "_seconds") && !strings.Contains(name, "age"):
			kind = "histogram"
		}
		lines = append(lines, strings.Join([]string{name, kind, m[3], help}, "\t"))
	}
	if len(lines) == 0 {
		return fmt.Errorf("no description has the form %s", description)
	}
	slices.Sort(lines)
	_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}

// described collects descriptions. It implements prometheus.Registerer.
type described []*prometheus.Desc

// Register implements prometheus.Registerer.
func (d *described) Register(c prometheus.Collector) error {
	ch := make(chan *prometheus.Desc)
	go func() {
		defer close(ch)
		c.Describe(ch)
	}()
	for desc := range ch {
		*d = append(*d, desc)
	}
	return nil
}

// MustRegister implements prometheus.Registerer.
func (d *described) MustRegister(collectors ...prometheus.Collector) {
	for _, c := range collectors {
		_ = d.Register(c) // it never fails
	}
}

// Unregister implements prometheus.Registerer.
func (d *described) Unregister(prometheus.Collector) bool { return false }
