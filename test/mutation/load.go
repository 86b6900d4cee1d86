package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// listedPackage is what go list says of a package.
type listedPackage struct {
	ImportPath   string   `json:"importPath"`
	Dir          string   `json:"dir"`
	Export       string   `json:"export"`
	ForTest      string   `json:"forTest"`
	GoFiles      []string `json:"goFiles"`
	TestGoFiles  []string `json:"testGoFiles"`
	XTestGoFiles []string `json:"xTestGoFiles"`
	Deps         []string `json:"deps"`
	TestImports  []string `json:"testImports"`
	XTestImports []string `json:"xTestImports"`
	Standard     bool     `json:"standard"`
	Error        *struct {
		Err string `json:"err"`
	} `json:"error"`
}

// program is the module, as far as it is needed.
type program struct {
	root     string
	packages map[string]*listedPackage // all, by import path
	targets  []string                  // what is changed, sorted
	imports  types.Importer
	fset     *token.FileSet
}

// goList runs go list and returns its packages.
func goList(ctx context.Context, root string, args ...string) ([]*listedPackage, error) {
	list := exec.CommandContext(ctx, "go", append([]string{"list", "-e"}, args...)...) //nolint:gosec // arguments of ours
	list.Dir = root
	var wrong bytes.Buffer
	list.Stderr = &wrong
	text, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, wrong.Bytes())
	}
	var out []*listedPackage
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var p listedPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		if p.Error != nil {
			return nil, fmt.Errorf("go list: %s: %s", p.ImportPath, p.Error.Err)
		}
		out = append(out, &p)
	}
}

// load compiles the module, so that what a package imports is known without its source.
func load(ctx context.Context, root string, patterns []string) (*program, error) {
	const fields = "-json=ImportPath,Dir,Export,ForTest,GoFiles,TestGoFiles,XTestGoFiles,Deps,TestImports,XTestImports,Standard,Error"
	all, err := goList(ctx, root, "-deps", "-test", "-export", fields, "./...")
	if err != nil {
		return nil, err
	}
	targets, err := goList(ctx, root, append([]string{"-json=ImportPath,GoFiles,Error"}, patterns...)...)
	if err != nil {
		return nil, err
	}
	p := &program{root: root, packages: map[string]*listedPackage{}, fset: token.NewFileSet()}
	for _, l := range all {
		if l.ForTest == "" && !strings.HasSuffix(l.ImportPath, ".test") { // not what go test makes of them
			p.packages[l.ImportPath] = l
		}
	}
	for _, t := range targets {
		if len(t.GoFiles) > 0 {
			p.targets = append(p.targets, t.ImportPath)
		}
	}
	slices.Sort(p.targets)
	p.imports = importer.ForCompiler(p.fset, "gc", func(path string) (io.ReadCloser, error) {
		l := p.packages[path]
		if l == nil || l.Export == "" {
			return nil, fmt.Errorf("go list does not know %s", path)
		}
		return os.Open(l.Export)
	})
	return p, nil
}

// hash is one of all sources of the targets, their tests included.
func (p *program) hash() string {
	h := sha256.New()
	for _, path := range p.targets {
		l := p.packages[path]
		for _, file := range slices.Concat(l.GoFiles, l.TestGoFiles, l.XTestGoFiles) {
			text, _ := os.ReadFile(filepath.Join(l.Dir, file)) //nolint:gosec // a file of this module, which go list has just read
			h.Write(text)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// source is a package with its syntax and types.
type source struct {
	*listedPackage
	files map[string]*ast.File // by name within the package
	text  map[string][]byte
	info  *types.Info
}

func (p *program) parse(path string) (*source, error) {
	s := &source{listedPackage: p.packages[path], files: map[string]*ast.File{}, text: map[string][]byte{}}
	for _, name := range s.GoFiles {
		file := filepath.Join(s.Dir, name)
		text, err := os.ReadFile(file) //nolint:gosec // a file of this module
		if err != nil {
			return nil, err
		}
		if s.files[name], err = parser.ParseFile(p.fset, file, text, parser.SkipObjectResolution); err != nil {
			return nil, err
		}
		s.text[name] = text
	}
	s.info = &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
	}
	config := types.Config{Importer: p.imports}
	if _, err := config.Check(path, p.fset, slices.Collect(maps.Values(s.files)), s.info); err != nil {
		return nil, err
	}
	return s, nil
}

// compiles reports whether the package's other files and this text of the named one are a program.
func (p *program) compiles(s *source, name string, text []byte, more ...*ast.File) bool {
	fset := p.fset // the importer's
	changed, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	files := append([]*ast.File{changed}, more...)
	for other, f := range s.files {
		if other != name {
			files = append(files, f)
		}
	}
	config := types.Config{Importer: p.imports}
	_, err = config.Check(s.ImportPath, fset, files, nil)
	return err == nil
}

// parseSwitches parses what is added to a package with many mutants.
func (p *program) parseSwitches(s *source) (*ast.File, error) {
	return parser.ParseFile(p.fset, "mutated_switches.go", fmt.Sprintf(switches, s.packageName(), switchVariable), parser.SkipObjectResolution)
}

func (s *source) packageName() string {
	for _, f := range s.files {
		return f.Name.Name
	}
	return ""
}

// dependsOn reports whether a package is the target or depends on it; its tests do not count.
func (l *listedPackage) dependsOn(target string) bool {
	return l.ImportPath == target || slices.Contains(l.Deps, target)
}
