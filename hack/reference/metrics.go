package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idalloc/idalloc/internal/autoscale/decide"
	autoscaler "github.com/idalloc/idalloc/internal/autoscale/metrics"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/metrics"
)

func metricTables(context.Context, string) (string, error) {
	head := []string{"metric", "type", "labels", "meaning"}
	descriptions := metrics.Descriptions()
	own := make([][]string, 0, len(descriptions))
	for _, d := range descriptions {
		labels := quote(d.Labels)
		if len(d.Values) > 0 {
			labels += ": " + strings.Join(d.Values, ", ")
		}
		own = append(own, []string{code(d.Name), string(d.Type), labels, d.Help})
	}
	others, err := autoscalers()
	if err != nil {
		return "", err
	}
	return "## Metrics\n\n### Of a pod\n\n" + table(head, own) + "\n### Of the autoscaler\n\nEach has the labels `owner_namespace`, `owner_kind` and `owner_name` besides its own.\n\n" + table(head, others), nil
}

// description matches the text of one of the client library's descriptions, which tells nothing otherwise.
var description = regexp.MustCompile(`^Desc\{fqName: ("(?:[^"\\]|\\.)*"), help: ("(?:[^"\\]|\\.)*"), .*variableLabels: \{([^}]*)\}\}$`)

// autoscalers returns the rows of the autoscaler's metrics, without those of Go and of the process.
func autoscalers() ([][]string, error) {
	ch := make(chan *prometheus.Desc)
	go func() {
		defer close(ch)
		autoscaler.New(decide.Settings{}, store.Ref{}).Describe(ch)
	}()
	rows := map[string][]string{}
	for d := range ch {
		m := description.FindStringSubmatch(d.String())
		if m == nil {
			continue
		}
		name, err := strconv.Unquote(m[1])
		if err != nil {
			return nil, err
		}
		help, err := strconv.Unquote(m[2])
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(name, "idalloc_") {
			continue
		}
		kind := "gauge"
		if strings.HasSuffix(name, "_total") {
			kind = "counter"
		}
		rows[name] = []string{code(name), kind, quote(strings.FieldsFunc(m[3], func(r rune) bool { return r == ',' || r == ' ' })), help}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("the autoscaler's metrics have no description of the form %s", description)
	}
	return sorted(rows), nil
}

func quote(names []string) string {
	quoted := make([]string, 0, len(names))
	for _, name := range names {
		quoted = append(quoted, code(name))
	}
	return strings.Join(quoted, ", ")
}
