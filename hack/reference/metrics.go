package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/idalloc/idalloc/internal/meter"
)

func metricTables(ctx context.Context, root string) (string, error) {
	head := []string{"metric", "type", "labels", "meaning"}
	descriptions := meter.Descriptions()
	own := make([][]string, 0, len(descriptions))
	for _, d := range descriptions {
		labels := quote(d.Labels)
		if len(d.Values) > 0 {
			labels += ": " + strings.Join(d.Values, ", ")
		}
		own = append(own, []string{code(d.Name), string(d.Type), labels, d.Help})
	}
	others, err := printed(ctx, root, "autoscaler")
	if err != nil {
		return "", err
	}
	controllers, err := printed(ctx, root, "controller")
	if err != nil {
		return "", err
	}
	return "## Metrics\n\n### Of a pod\n\n" + table(head, own) + "\n### Of the autoscaler\n\nEach has the labels `owner_namespace`, `owner_kind` and `owner_name` besides its own.\n\n" + table(head, others) + "\n### Of the controller\n\n" + table(head, controllers), nil
}

// printed returns the rows of the metrics of another module. They come from a program of it.
func printed(ctx context.Context, root, module string) ([][]string, error) {
	cmd := exec.CommandContext(ctx, "go", "run", "./hack/metrics")
	cmd.Dir = filepath.Join(root, module)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s in %s: %w", cmd, cmd.Dir, err)
	}
	var rows [][]string
	for line := range strings.Lines(string(out)) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(cells) != 4 {
			return nil, fmt.Errorf("%s in %s printed the line %q", cmd, cmd.Dir, line)
		}
		labels := strings.FieldsFunc(cells[2], func(r rune) bool { return r == ',' || r == ' ' })
		rows = append(rows, []string{code(cells[0]), cells[1], quote(labels), cells[3]})
	}
	return rows, nil
}

func quote(names []string) string {
	quoted := make([]string, 0, len(names))
	for _, name := range names {
		quoted = append(quoted, code(name))
	}
	return strings.Join(quoted, ", ")
}
