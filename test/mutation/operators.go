package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
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
	m.around = append(m.around, m.head(n))
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

// String says which mutant it is, for logs.
func (m *mutant) String() string { return fmt.Sprintf("%s:%d %s", m.file, m.line, m.name) }
