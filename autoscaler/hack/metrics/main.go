// Metrics prints a line for each of the autoscaler's metrics: name, type, labels and meaning, with a tabulator between them. The page that
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

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idalloc/idalloc/autoscaler/internal/decide"
	"github.com/idalloc/idalloc/autoscaler/internal/metrics"
	"github.com/idalloc/idalloc/pkg/allocator/store"
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
	ch := make(chan *prometheus.Desc)
	go func() {
		defer close(ch)
		metrics.New(decide.Settings{}, store.Ref{}).Describe(ch)
	}()
	var lines []string
	for d := range ch {
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
		if strings.HasSuffix(name, "_total") {
			kind = "counter"
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
