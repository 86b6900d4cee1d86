// Reference makes docs/reference.md, which has the flags, environment variables, metrics, labels and annotations that there are, and docs/messages.md,
// which explains idalloc's messages. It reads them from the programs and from the code. A test fails when a page is not current.
//
//	go run ./hack/reference
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	document = "docs/reference.md"
	intro    = `# Reference

For people who look up a name. These are all names that idalloc has, made from the code by ` + "`go run ./hack/reference`" + `. The [contract](contract.md)
says which of them are kept stable and what their values look like. [messages.md](messages.md) has what idalloc says, and
[metrics.md](metrics.md) how to watch the metrics.
`
)

func main() {
	if err := write(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func write(ctx context.Context) error {
	for path, text := range pages() {
		text, err := text(ctx, ".")
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // a page for all
			return err
		}
	}
	return nil
}

// pages returns what makes each page.
func pages() map[string]func(ctx context.Context, root string) (string, error) {
	return map[string]func(context.Context, string) (string, error){document: page, messagesDocument: messagesPage}
}

// page returns the page for the project in a directory.
func page(ctx context.Context, root string) (string, error) {
	var b strings.Builder
	b.WriteString(intro)
	for _, part := range []func(context.Context, string) (string, error){commands, metricTables, keys} {
		text, err := part(ctx, root)
		if err != nil {
			return "", err
		}
		b.WriteString("\n" + text)
	}
	return b.String(), nil
}

// table returns a table in Markdown.
func table(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(head)
	b.WriteString("|" + strings.Repeat(" --- |", len(head)) + "\n")
	for _, row := range rows {
		cells := make([]string, 0, len(row))
		for _, cell := range row {
			if cell = strings.ReplaceAll(cell, "|", `\|`); cell == "" {
				cell = "–"
			}
			cells = append(cells, cell)
		}
		line(cells)
	}
	return b.String()
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// sources returns the Go files of the root and below some directories, without tests, in order.
func sources(root string, dirs ...string) ([]string, error) {
	all, err := filepath.Glob(filepath.Join(root, "*.go")) // none of them is in a folder
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(path string) bool { return strings.HasSuffix(path, "_test.go") })
	for _, dir := range dirs {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				all = append(all, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
