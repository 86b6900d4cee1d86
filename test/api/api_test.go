package api

import (
	"cmp"
	"flag"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the texts again") //nolint:gochecknoglobals // a flag of the test

// A change of these texts is a change of the contract in docs/contract.md: think of those who link the packages.
func TestWhatGoProgramsMayRelyOnStays(t *testing.T) {
	for _, name := range []string{".", "pkg/context", "pkg/identity", "pkg/metrics", "pkg/metrics/collector", "pkg/numbers", "pkg/placement"} {
		t.Run(name, func(t *testing.T) {
			got := exported(t, filepath.Join("..", "..", name))
			path := filepath.Join("testdata", cmp.Or(strings.ReplaceAll(strings.TrimPrefix(strings.TrimPrefix(name, "."), "pkg/"), "/", "-"), "idalloc")+".txt")
			if *rewrite {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path) //nolint:gosec // a file of this package
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s exports other things than %s says; if that is meant to be, run go test ./test/api -rewrite. It exports now:\n%s", name, path, got)
			}
		})
	}
}

// exported returns the exported declarations of a package without comments and bodies, in the order of their text.
func exported(t *testing.T, dir string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no Go files in %s (%v)", dir, err)
	}
	var decls []string
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.FileExports(file)
		for _, d := range file.Decls {
			if general, ok := d.(*ast.GenDecl); ok && general.Tok == token.IMPORT {
				continue
			}
			if function, ok := d.(*ast.FuncDecl); ok {
				if !receives(function) {
					continue
				}
				function.Body = nil
			}
			var text strings.Builder
			if err := format.Node(&text, files, d); err != nil {
				t.Fatal(err)
			}
			decls = append(decls, plain(text.String()))
		}
	}
	slices.Sort(decls)
	return strings.Join(decls, "\n")
}

// plain returns a declaration without what only comments change: empty lines and columns.
func plain(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 {
			indent := line[:len(line)-len(strings.TrimLeft(line, "\t"))]
			out.WriteString(indent + strings.Join(words, " ") + "\n")
		}
	}
	return out.String()
}

// receives reports whether callers can have a receiver of the function, or it has none.
func receives(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return true
	}
	of := f.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	name, ok := of.(*ast.Ident)
	return ok && name.IsExported()
}
