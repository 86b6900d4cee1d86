package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// maker makes the mutants of one file.
type maker struct {
	s     *source
	fset  *token.FileSet
	start int // offset of the file in its set
	name  string
	text  []byte
	path  []ast.Node // from the file down to the node that is looked at

	out    []*mutant
	around []string
}

// mutate makes the mutants of one package, file by file.
func (p *program) mutate(s *source) []*mutant {
	var out []*mutant
	var around []string
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		f := s.files[name]
		m := maker{s: s, fset: p.fset, start: p.fset.File(f.FileStart).Base(), name: name, text: s.text[name]}
		ast.PreorderStack(f, nil, func(n ast.Node, stack []ast.Node) bool {
			m.path = stack
			return m.look(n)
		})
		out = append(out, m.out...)
		around = append(around, m.around...)
	}
	nameAll(out, around)
	for _, m := range out {
		if rel, err := filepath.Rel(p.root, m.path); err == nil {
			m.file = rel
		}
	}
	return out
}

// look makes the mutants of one node. It returns whether the nodes below are looked at.
func (m *maker) look(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportSpec, *ast.Field:
		return false
	case *ast.ExprStmt:
		m.statement(n)
		return !m.logs(n)
	case ast.Stmt:
		m.statement(n)
	case ast.Expr:
		m.expression(n)
	}
	switch n := n.(type) {
	case *ast.BlockStmt:
		m.swaps(n.List)
	case *ast.CaseClause:
		m.swaps(n.Body)
	case *ast.CommClause:
		m.swaps(n.Body)
	case *ast.ReturnStmt:
		m.returned(n)
	}
	return true
}

func (m *maker) offset(p token.Pos) int { return int(p) - m.start }

func (m *maker) textOf(n ast.Node) string {
	return string(m.text[m.offset(n.Pos()):m.offset(n.End())])
}

// add notes a mutant that changes something of n.
func (m *maker) add(kind string, n ast.Node, edits ...edit) {
	file := m.fset.File(n.Pos())
	first, last := edits[0].from, edits[len(edits)-1].to
	function, generic := m.function(n)
	m.out = append(m.out, &mutant{
		packageName: m.s.packageName(), pkg: m.s.ImportPath, path: filepath.Join(m.s.Dir, m.name), base: m.name, kind: kind, function: function, generic: generic,
		line: file.Line(file.Pos(first)), last: file.Line(file.Pos(last)), edits: edits, original: m.text,
	})
	made := m.out[len(m.out)-1]
	if made.reached = made.line; m.inCase(n) != nil {
		made.reached = file.Line(m.inCase(n).Pos())
	}
	m.around = append(m.around, m.head(n))
}

// inCase returns the switch of whose cases' conditions n is a part, nil if it is none. The conditions run whenever the switch does, but go's
// coverage counts only the statements of a case.
func (m *maker) inCase(n ast.Node) ast.Node {
	var of ast.Node
	for _, outer := range m.path {
		switch outer := outer.(type) {
		case *ast.SwitchStmt:
			of = outer
		case *ast.CaseClause:
			if n.End() <= outer.Colon {
				return of
			}
		}
	}
	return nil
}

// addSwitched notes a mutant that can also be switched on in a running program.
func (m *maker) addSwitched(kind string, n ast.Node, switched []edit, edits ...edit) {
	m.add(kind, n, edits...)
	m.out[len(m.out)-1].switched = switched
}

// put replaces the text of n.
func (m *maker) put(n ast.Node, text string) edit {
	return edit{from: m.offset(n.Pos()), to: m.offset(n.End()), text: text}
}

// wrap puts text before and after n.
func (m *maker) wrap(n ast.Node, before, after string) []edit {
	from, to := m.offset(n.Pos()), m.offset(n.End())
	return []edit{{from: from, to: from, text: before}, {from: to, to: to, text: after}}
}

// function names the function around n, with its receiver's type. Where there is none, or where it is generic, the compiler's output for the
// package does not show what it does.
func (m *maker) function(n ast.Node) (name string, generic bool) {
	for _, outer := range append(slices.Clone(m.path), n) {
		f, ok := outer.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if f.Recv == nil || len(f.Recv.List) == 0 {
			return f.Name.Name, f.Type.TypeParams != nil
		}
		receiver := f.Recv.List[0].Type
		if star, ok := receiver.(*ast.StarExpr); ok {
			receiver = star.X
		}
		if of, ok := receiver.(*ast.IndexExpr); ok {
			return m.textOf(of.X) + "." + f.Name.Name, true
		}
		return m.textOf(receiver) + "." + f.Name.Name, f.Type.TypeParams != nil
	}
	return "package", true
}

// head is the text of the innermost statement or specification around n, up to its block.
func (m *maker) head(n ast.Node) string {
	found := n
	for _, outer := range slices.Backward(m.path) {
		if _, ok := found.(ast.Stmt); ok {
			break
		}
		if _, ok := found.(ast.Spec); ok {
			break
		}
		found = outer
	}
	text := words(m.textOf(found))
	if head, _, ok := strings.Cut(text, "{ "); ok && len(head) > 0 {
		text = head
	}
	return text[:min(len(text), 300)]
}

// statement drops what stands in a list of statements.
func (m *maker) statement(n ast.Stmt) {
	if !m.listed() || m.logs(n) || m.isAlone() {
		return
	}
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE || m.textOf(n.Lhs[0]) == "_" && len(n.Lhs) == 1 {
			return
		}
	case *ast.ReturnStmt:
		if len(n.Results) == 0 && m.isLast(n) {
			return
		}
	case *ast.ExprStmt, *ast.IncDecStmt, *ast.DeferStmt, *ast.GoStmt, *ast.SendStmt, *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt,
		*ast.TypeSwitchStmt, *ast.SelectStmt:
	case *ast.BranchStmt:
		if n.Tok == token.FALLTHROUGH {
			return
		}
	default:
		return
	}
	m.addSwitched("drop-statement", n, m.wrap(n, "if !mutated("+numberMark+") { ", " }"), m.wrap(n, "if false { ", " }")...)
}

// listed reports whether the node stands in a list of statements.
func (m *maker) listed() bool {
	switch m.parent().(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
		return true
	}
	return false
}

// isAlone reports whether the node is all that an if without else does: then the whole if is dropped.
func (m *maker) isAlone() bool {
	body, ok := m.parent().(*ast.BlockStmt)
	if !ok || len(body.List) != 1 || len(m.path) < 2 {
		return false
	}
	outer, ok := m.path[len(m.path)-2].(*ast.IfStmt)
	return ok && outer.Body == body && outer.Else == nil && outer.Init == nil
}

func (m *maker) parent() ast.Node { return m.path[len(m.path)-1] }

// isLast reports whether a statement is the last of its function.
func (m *maker) isLast(n ast.Stmt) bool {
	body, ok := m.parent().(*ast.BlockStmt)
	if !ok || body.List[len(body.List)-1] != n {
		return false
	}
	switch m.path[len(m.path)-2].(type) {
	case *ast.FuncDecl, *ast.FuncLit:
		return true
	}
	return false
}

// logs reports whether a statement only logs.
func (m *maker) logs(n ast.Stmt) bool {
	e, ok := n.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := e.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	used := m.s.info.Uses[selector.Sel]
	return used != nil && used.Pkg() != nil && used.Pkg().Path() == "github.com/go-logr/logr"
}

// String says which mutant it is, for logs.
func (m *mutant) String() string { return fmt.Sprintf("%s:%d %s", m.file, m.line, m.name) }
