package main

import (
	"cmp"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// camel matches the reason of an Event.
var camel = regexp.MustCompile(`^([A-Z][a-z]+|ID){2,}$`)

// reasons returns the texts in the Go files of directories that can be nothing else than reasons of Events.
func reasons(root string, dirs ...string) ([]string, error) {
	found := map[string]bool{}
	err := inspect(root, dirs, func(path string, n ast.Node) {
		literal, ok := n.(*ast.BasicLit)
		if within, err := filepath.Rel(root, filepath.Dir(path)); !ok || err != nil || !slices.Contains(dirs, within) {
			return
		}
		if text, err := strconv.Unquote(literal.Value); err == nil && camel.MatchString(text) {
			found[text] = true
		}
	})
	return slices.Sorted(maps.Keys(found)), err
}

// keys lists the labels and annotations: those of the contract with what it says about their values, and those of injection.
func keys(_ context.Context, root string) (string, error) {
	const contract = "docs/contract.md"
	text, err := os.ReadFile(filepath.Join(root, contract)) //nolint:gosec // a file of the project
	if err != nil {
		return "", err
	}
	inCode := map[string]bool{}
	for _, dir := range []string{"pkg/allocator/assignment", "pkg/allocator/receipt"} {
		if err := constants(root, dir, func(key, _ string) { inCode[key] = isKey.MatchString(key) }); err != nil {
			return "", err
		}
	}
	var own, injection [][]string
	for _, m := range regexp.MustCompile("(?m)^\\| (?:label |annotation )?`([^`]+)` \\| (.*) \\|$").FindAllStringSubmatch(string(text), -1) {
		if inCode[m[1]] || strings.HasPrefix(m[1], "idalloc.dev/") {
			own = append(own, []string{code(m[1]), strings.TrimSuffix(m[2], ", see below")})
			delete(inCode, m[1])
		}
	}
	for key, missing := range inCode {
		if missing {
			return "", fmt.Errorf("%s does not explain the key %s", contract, key)
		}
	}
	err = constants(root, "internal/inject", func(key, comment string) {
		if isKey.MatchString(key) && !slices.ContainsFunc(own, func(row []string) bool { return row[0] == code(key) }) {
			injection = append(injection, []string{code(key), comment})
		}
	})
	head := []string{"key", "value"}
	return "## Labels and annotations\n\n[On the workload](contract.md#on-the-workload), and [on its pods](contract.md#on-each-pod):\n\n" + table(head, own) +
		"\nOn a pod template, for [injection](injection.md#options):\n\n" + table(head, injection), err
}

var isKey = regexp.MustCompile(`^([a-z]+\.)?(idalloc\.dev|kubernetes\.io)/[a-z-]+$`)

// constants calls f with each constant that is a text, and with its comment. A text may begin with another constant of its package.
func constants(root, dir string, f func(text, comment string)) error {
	known, alone := map[string]string{}, "" // alone is the comment of a declaration without parentheses
	return inspect(root, []string{dir}, func(path string, n ast.Node) {
		if decl, ok := n.(*ast.GenDecl); ok && len(decl.Specs) == 1 && !decl.Lparen.IsValid() {
			alone = decl.Doc.Text()
		}
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != len(spec.Names) {
			return
		}
		for i, name := range spec.Names {
			text, ok := value(spec.Values[i], known, filepath.Dir(path))
			if !ok {
				continue
			}
			known[filepath.Dir(path)+"."+name.Name] = text
			f(text, sentence(name.Name, cmp.Or(spec.Doc.Text(), spec.Comment.Text(), alone)))
		}
		alone = ""
	})
}

// value returns the text of an expression that is one, or the sum of a constant and one.
func value(e ast.Expr, known map[string]string, dir string) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.Ident:
		text, ok := known[dir+"."+e.Name]
		return text, ok
	case *ast.BinaryExpr:
		left, okLeft := value(e.X, known, dir)
		right, okRight := value(e.Y, known, dir)
		return left + right, okLeft && okRight
	}
	return "", false
}

// sentence takes the name of the constant off its comment.
func sentence(name, comment string) string {
	text := strings.Join(strings.Fields(strings.TrimPrefix(comment, name+" is ")), " ")
	return strings.ToUpper(text[:min(1, len(text))]) + text[min(1, len(text)):]
}

// inspect calls f with each node of the Go files below some directories.
func inspect(root string, dirs []string, f func(path string, n ast.Node)) error {
	paths, err := sources(root, dirs...)
	if err != nil {
		return err
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if n != nil {
				f(path, n)
			}
			return true
		})
	}
	return nil
}
