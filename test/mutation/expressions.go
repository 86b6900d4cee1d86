package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// expression makes what an expression gives: conditions, comparisons, constants.
func (m *maker) expression(n ast.Expr) {
	if m.isCondition(n) {
		m.addSwitched("negate", n, m.wrap(n, "(mutated("+numberMark+") != (", "))"), m.wrap(n, "!(", ")")...)
	}
	switch n := n.(type) {
	case *ast.BinaryExpr:
		m.binary(n)
	case *ast.BasicLit:
		m.literal(n)
	case *ast.Ident:
		if value, ok := m.s.info.Uses[n].(*types.Const); ok && value.Parent() == types.Universe {
			switch n.Name {
			case "true":
				m.addSwitched("constant", n, m.wrap(n, "(mutated("+numberMark+") != ", ")"), m.put(n, "false"))
			case "false":
				m.addSwitched("constant", n, m.wrap(n, "(mutated("+numberMark+") != ", ")"), m.put(n, "true"))
			}
		}
	case *ast.CallExpr:
		if name, ok := n.Fun.(*ast.Ident); ok && m.isBuiltin(name) {
			switch name.Name {
			case "min":
				if m.isCapacity(n) {
					return
				}
				m.add("constant", name, m.put(name, "max"))
			case "max":
				m.add("constant", name, m.put(name, "min"))
			}
		}
	case *ast.CompositeLit:
		m.fields(n)
	}
}

func (m *maker) isBuiltin(name *ast.Ident) bool {
	_, ok := m.s.info.Uses[name].(*types.Builtin)
	return ok
}

// isCondition reports whether n is a whole condition, or any other expression of bool that is more than a name.
func (m *maker) isCondition(n ast.Expr) bool {
	t := m.s.info.Types[n]
	if t.Type == nil || !t.IsValue() || t.Value != nil {
		return false
	}
	if b, ok := t.Type.Underlying().(*types.Basic); !ok || b.Info()&types.IsBoolean == 0 {
		return false
	}
	switch parent := m.parent().(type) {
	case *ast.IfStmt, *ast.ForStmt, *ast.CaseClause, *ast.ReturnStmt:
		return true
	case *ast.ParenExpr, *ast.ExprStmt, *ast.SelectorExpr:
		return false
	case *ast.UnaryExpr:
		return false
	case *ast.BinaryExpr:
		return parent.Op != token.LAND && parent.Op != token.LOR && isComposed(n)
	}
	return isComposed(n)
}

func isComposed(n ast.Expr) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		return true
	case *ast.UnaryExpr:
		return n.Op == token.NOT
	}
	return false
}

func (m *maker) binary(n *ast.BinaryExpr) {
	other := map[token.Token]string{
		token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.ADD: "-", token.SUB: "+",
	}
	switch n.Op {
	case token.LAND, token.LOR:
		neutral, begin := "true || ", "(mutated("+numberMark+") || ("
		if n.Op == token.LOR {
			neutral, begin = "false && ", "(!mutated("+numberMark+") && ("
		}
		for _, operand := range []ast.Expr{n.X, n.Y} {
			if inner, ok := operand.(*ast.BinaryExpr); ok && inner.Op == n.Op {
				continue // its own operands are dropped
			}
			m.addSwitched("drop-operand", operand, m.wrap(operand, begin, "))"), m.wrap(operand, "("+neutral, ")")...)
		}
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		m.addSwitched("compare", n, m.call(n), m.operator(n, other[n.Op]))
	case token.ADD, token.SUB:
		if t := m.s.info.Types[n]; m.isNumber(t) && !isLiteral(n.Y) && !m.isCapacity(n) {
			m.addSwitched("constant", n, m.call(n), m.operator(n, other[n.Op]))
		}
	default:
	}
}

func (m *maker) operator(n *ast.BinaryExpr, op string) edit {
	at := m.offset(n.OpPos)
	return edit{from: at, to: at + len(n.Op.String()), text: op}
}

// call has a function of the switches compute the operation.
func (m *maker) call(n *ast.BinaryExpr) []edit {
	names := map[token.Token]string{
		token.LSS: "LSS", token.LEQ: "LEQ", token.GTR: "GTR", token.GEQ: "GEQ", token.ADD: "ADD", token.SUB: "SUB",
	}
	around := m.wrap(n, "mutated"+names[n.Op]+"("+numberMark+", ", ")")
	return []edit{around[0], m.operator(n, ","), around[1]}
}

func (m *maker) isNumber(t types.TypeAndValue) bool {
	b, ok := t.Type.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsNumeric != 0
}

func isLiteral(n ast.Expr) bool {
	_, ok := n.(*ast.BasicLit)
	return ok
}

func (m *maker) literal(n *ast.BasicLit) {
	if n.Kind != token.INT {
		return
	}
	if m.isCapacity(n) || m.isBesideFailure(n) {
		return
	}
	value, err := strconv.ParseInt(n.Value, 0, 64)
	if err != nil {
		return
	}
	next := value + 1
	t := m.s.info.Types[n].Type
	switch named, ok := t.(*types.Named); {
	case value == 1, ok && value > 0 && named.Obj().Name() == "Duration":
		next = 0
	}
	other := strconv.FormatInt(next, 10)
	name := types.TypeString(t, func(p *types.Package) string {
		if p.Path() == m.s.ImportPath {
			return ""
		}
		return p.Name()
	})
	m.addSwitched("constant", n, m.wrap(n, "mutatedValue["+name+"]("+numberMark+", ", ", "+other+")"), m.put(n, other))
}

// isCapacity reports whether n only says how much room is made.
func (m *maker) isCapacity(n ast.Expr) bool {
	inner := ast.Node(n)
	for _, outer := range slices.Backward(m.path) {
		if _, ok := outer.(ast.Expr); !ok {
			return false
		}
		call, ok := outer.(*ast.CallExpr)
		if name, named := callee(call, ok); named && name.Name == "make" && m.isBuiltin(name) && call.Args[len(call.Args)-1] == inner {
			_, slice := m.s.info.Types[call].Type.Underlying().(*types.Slice)
			return !slice || len(call.Args) == 3
		}
		inner = outer
	}
	return false
}

// isBesideFailure reports whether n is returned together with an error or with false: nobody looks at it then.
func (m *maker) isBesideFailure(n ast.Expr) bool {
	r, ok := m.parent().(*ast.ReturnStmt)
	if !ok {
		return false
	}
	last := r.Results[len(r.Results)-1]
	if last == n {
		return false
	}
	t := m.s.info.Types[last]
	return m.textOf(last) == "false" || (t.Type != nil && !t.IsNil() && types.Implements(t.Type, errorType()))
}

func callee(call *ast.CallExpr, ok bool) (name *ast.Ident, named bool) {
	if !ok {
		return nil, false
	}
	name, named = call.Fun.(*ast.Ident)
	return name, named
}

// fields drops each field that a literal of a struct sets.
func (m *maker) fields(n *ast.CompositeLit) {
	t := m.s.info.Types[n].Type
	if t == nil {
		return
	}
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	if _, ok := t.Underlying().(*types.Struct); !ok {
		return
	}
	for _, field := range n.Elts {
		if _, ok := field.(*ast.KeyValueExpr); !ok {
			return
		}
		e := m.put(field, "")
		for e.to < len(m.text) && (m.text[e.to] == ' ' || m.text[e.to] == ',') {
			e.to++
			if m.text[e.to-1] == ',' {
				break
			}
		}
		e.text = strings.Repeat("\n", strings.Count(string(m.text[e.from:e.to]), "\n"))
		m.add("drop-field", field, e)
	}
}

// returned replaces errors by nil.
func (m *maker) returned(n *ast.ReturnStmt) {
	m.path = append(slices.Clone(m.path), n)
	for _, result := range n.Results {
		t := m.s.info.Types[result]
		if t.Type == nil || t.IsNil() || !types.Implements(t.Type, errorType()) {
			continue
		}
		call, ok := result.(*ast.CallExpr)
		switch {
		case len(n.Results) > 1, !ok, strings.HasPrefix(m.textOf(call.Fun), "fmt.Errorf"), strings.HasPrefix(m.textOf(call.Fun), "errors."):
			m.addSwitched("nil-error", result, m.noError(result), m.put(result, "nil"+strings.Repeat("\n", strings.Count(m.textOf(result), "\n"))))
		default: // what it calls is still done
			m.addSwitched("nil-error", result, m.noError(result), edit{from: m.offset(n.Pos()), to: m.offset(result.Pos()), text: "{ _ = "},
				edit{from: m.offset(n.End()), to: m.offset(n.End()), text: "; return nil }"})
		}
	}
}

func (m *maker) noError(result ast.Expr) []edit {
	return m.wrap(result, "mutatedValue[error]("+numberMark+", ", ", nil)")
}

func errorType() *types.Interface {
	return types.Universe.Lookup("error").Type().Underlying().(*types.Interface) //nolint:forcetypeassert,errcheck // it is one
}
