package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// swaps exchanges neighbours that may not be exchanged for nothing: they call, leave, or use what the other one writes.
func (m *maker) swaps(list []ast.Stmt) {
	for i := range len(list) - 1 {
		a, b := list[i], list[i+1]
		if m.logs(a) || m.logs(b) || isDeclaration(a) || isDefault(a) || isDefault(b) || (leaves(b) && isJump(b)) {
			continue
		}
		x, y := m.effects(a), m.effects(b)
		if !x.meets(y) {
			continue
		}
		m.add("swap", a, m.put(a, m.textOf(b)), m.put(b, m.textOf(a)))
	}
}

func isDeclaration(n ast.Stmt) bool {
	switch n.(type) {
	case *ast.DeclStmt, *ast.LabeledStmt:
		return true
	}
	return false
}

// isDefault reports whether a statement is the clause that is looked at last wherever it stands.
func isDefault(n ast.Stmt) bool {
	switch n := n.(type) {
	case *ast.CaseClause:
		return n.List == nil
	case *ast.CommClause:
		return true // select has no order
	}
	return false
}

func isJump(n ast.Stmt) bool {
	switch n.(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	}
	return false
}

// effects are what a statement may do to its neighbours: variables and fields by their text, such as p.next.
type effects struct {
	reads, writes map[string]bool
	calls, leaves bool
}

func (e effects) meets(o effects) bool {
	if (e.calls || e.leaves) && (o.calls || o.leaves) {
		return true
	}
	return e.disturbs(o) || o.disturbs(e) || (e.leaves && len(o.writes) > 0) || (o.leaves && len(e.writes) > 0)
}

// disturbs reports whether e writes what o reads or writes; a call may read what belongs to the variables that it gets.
func (e effects) disturbs(o effects) bool {
	for x := range e.writes {
		root, _, _ := strings.Cut(x, ".")
		for y := range o.reads {
			if within(x, y) || within(y, x) || (o.calls && within(y, root)) {
				return true
			}
		}
	}
	return false
}

// within reports whether x is y or a field of it.
func within(x, y string) bool {
	rest, ok := strings.CutPrefix(x, y)
	return ok && (rest == "" || rest[0] == '.')
}

// variable returns the text of a variable or of a field of one, "" for anything else, and the rest of the expression, which is only read.
func (m *maker) variable(n ast.Expr) (name string, rest ast.Expr) {
	switch n := n.(type) {
	case *ast.Ident:
		if m.object(n) != nil {
			return n.Name, nil
		}
	case *ast.SelectorExpr:
		if s := m.s.info.Selections[n]; s != nil && s.Kind() == types.FieldVal {
			if of, rest := m.variable(n.X); of != "" {
				return of + "." + n.Sel.Name, rest
			}
		}
	case *ast.IndexExpr:
		name, _ := m.variable(n.X)
		return name, n.Index
	case *ast.StarExpr:
		return m.variable(n.X)
	case *ast.ParenExpr:
		return m.variable(n.X)
	}
	return "", nil
}

func (m *maker) effects(n ast.Stmt) effects {
	e := effects{reads: map[string]bool{}, writes: map[string]bool{}, leaves: leaves(n)}
	write := func(to ast.Expr) {
		if name, _ := m.variable(to); name != "" {
			e.writes[name] = true
		}
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, l := range n.Lhs {
				write(l)
			}
		case *ast.IncDecStmt:
			write(n.X)
		case *ast.CallExpr:
			if name, ok := n.Fun.(*ast.Ident); ok && m.isBuiltin(name) {
				if name.Name == "delete" || name.Name == "clear" || name.Name == "close" {
					write(n.Args[0])
				}
			} else if t, ok := m.s.info.Types[n.Fun]; !ok || !t.IsType() {
				e.calls = true
			}
		case *ast.SendStmt, *ast.GoStmt, *ast.DeferStmt:
			e.calls = true
		case *ast.UnaryExpr:
			e.calls = e.calls || n.Op == token.ARROW
		}
		return m.read(n, e)
	})
	return e
}

// read notes what an expression reads, and returns whether the expressions in it are looked at.
func (m *maker) read(n ast.Node, e effects) bool {
	x, ok := n.(ast.Expr)
	if !ok {
		return true
	}
	name, rest := m.variable(x)
	if name == "" {
		return true
	}
	e.reads[name] = true
	if rest != nil {
		ast.Inspect(rest, func(n ast.Node) bool { return m.read(n, e) })
		return true
	}
	return false
}

func (m *maker) object(x *ast.Ident) types.Object {
	o := m.s.info.Uses[x]
	if o == nil {
		o = m.s.info.Defs[x]
	}
	if v, ok := o.(*types.Var); ok && !v.IsField() {
		return v
	}
	return nil
}

// leaves reports whether a statement may jump out of its list.
func leaves(n ast.Stmt) bool {
	found := false
	ast.Inspect(n, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt, *ast.BranchStmt:
			found = true
		}
		return !found
	})
	return found
}
