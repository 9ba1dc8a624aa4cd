package vet

import (
	"cmp"
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/cfg"
)

// flow answers what may run after a node.
type flow struct {
	info  *types.Info
	graph *cfg.CFG
	says  map[types.Object]*ast.CallExpr // which call a variable has the truth of
	cases map[ast.Node]ast.Expr          // which comparison a case of a switch makes
}

// newFlow builds the graph without the facts of package ctrlflow: go vet would have to analyze
// every dependency for them. The calls that end a program or a test are few.
func newFlow(b *body) *flow {
	mayReturn := func(call *ast.CallExpr) bool { return !ends(b.info, call) }
	f := &flow{b.info, cfg.New(b.block, mayReturn), make(map[types.Object]*ast.CallExpr), make(map[ast.Node]ast.Expr)}
	ast.Inspect(b.block, func(n ast.Node) bool {
		if to, values := assigned(n); len(values) == 1 {
			call, _ := values[0].(*ast.CallExpr)
			if id, named := to[len(to)-1].(*ast.Ident); named && call != nil {
				f.says[f.info.ObjectOf(id)] = call // `held, ok := errors.AsType[E](err)`
			}
		}
		s, _ := n.(*ast.SwitchStmt)
		if s == nil {
			return true
		}
		// `switch true` has conditions for cases.
		if _, named := s.Tag.(*ast.Ident); named && f.info.Types[s.Tag].Value == nil {
			for _, clause := range s.Body.List {
				for _, e := range clause.(*ast.CaseClause).List {
					f.cases[e] = &ast.BinaryExpr{X: s.Tag, Op: token.EQL, Y: e}
				}
			}
		}
		return true
	})
	return f
}

var ending = map[string]bool{
	"os.Exit": true, "runtime.Goexit": true, "log.Fatal": true, "log.Fatalf": true, "log.Fatalln": true,
	"log.Panic": true, "log.Panicf": true, "log.Panicln": true,
	"testing.Fatal": true, "testing.Fatalf": true, "testing.FailNow": true,
	"testing.Skip": true, "testing.Skipf": true, "testing.SkipNow": true,
}

func ends(info *types.Info, call *ast.CallExpr) bool {
	if id, ok := ast.Unparen(call.Fun).(*ast.Ident); ok && info.Uses[id] == types.Universe.Lookup("panic") {
		return true
	}
	fn := callee(info, call)
	return fn != nil && fn.Pkg() != nil && ending[fn.Pkg().Path()+"."+fn.Name()]
}

// verdict says how a search goes on after a node.
type verdict int

const (
	goOn  verdict = iota
	stop          // nothing is wrong on this path
	found         // this is what was searched for
)

// search is a walk along every path.
type search struct {
	visit func(n ast.Node) verdict
	// lock and err are of the call that the search begins at: a path on which err is not nil, or
	// lock is, has no lock.
	lock, err *types.Var
}

// point is where a search has been. Once err has another value it says nothing of the lock.
type point struct {
	block *cfg.Block
	stale bool
}

// after searches what may run after the node that from is in, and returns the node that was found,
// or nil. Without from it searches the whole function.
func (f *flow) after(from ast.Node, s search) ast.Node {
	block, i := f.graph.Blocks[0], -1
	if from != nil {
		if block, i = f.find(from); block == nil {
			return nil
		}
	}
	return f.walk(point{block: block}, block.Nodes[i+1:], s, make(map[point]bool))
}

// find returns the block that n is in, and the place of the smallest node there that has n.
func (f *flow) find(n ast.Node) (in *cfg.Block, at int) {
	var size token.Pos
	for _, b := range f.graph.Blocks {
		for i, m := range b.Nodes {
			if length := m.End() - m.Pos(); contains(m, n) && (in == nil || length < size) {
				in, at, size = b, i, length
			}
		}
	}
	return in, at
}

func contains(outer, inner ast.Node) bool {
	return outer.Pos() <= inner.Pos() && inner.End() <= outer.End()
}

func (f *flow) walk(at point, nodes []ast.Node, s search, seen map[point]bool) ast.Node {
	for _, n := range nodes {
		switch s.visit(n) {
		case stop:
			return nil
		case found:
			return n
		}
		at.stale = at.stale || assigns(f.info, n, s.err)
	}
	for i, next := range at.block.Succs {
		to := point{next, at.stale}
		if seen[to] || len(nodes) > 0 && len(at.block.Succs) == 2 && f.excludes(nodes[len(nodes)-1], i == 0, at.stale, s) {
			continue
		}
		seen[to] = true
		if n := f.walk(to, next.Nodes, s, seen); n != nil {
			return n
		}
	}
	return nil
}

// excludes reports whether there is no lock if cond is what outcome says.
func (f *flow) excludes(cond ast.Node, outcome, stale bool, s search) bool {
	e, ok := cond.(ast.Expr)
	if !ok {
		return false
	}
	e = cmp.Or(f.cases[e], e)
	switch e := ast.Unparen(e).(type) {
	case *ast.UnaryExpr:
		return e.Op == token.NOT && f.excludes(e.X, !outcome, stale, s)
	case *ast.BinaryExpr:
		switch e.Op {
		case token.LAND, token.LOR:
			x, y := f.excludes(e.X, outcome, stale, s), f.excludes(e.Y, outcome, stale, s)
			if outcome == (e.Op == token.LAND) {
				return x || y // both sides are what outcome says
			}
			return x && y // either may be
		case token.EQL, token.NEQ:
			equal := outcome == (e.Op == token.EQL)
			return equal && f.isNil(e, s.lock) || !equal && !stale && f.isNil(e, s.err) ||
				equal && !stale && f.isSentinel(e, s.err)
		}
	case *ast.Ident:
		call := f.says[f.info.Uses[e]]
		return call != nil && f.excludes(call, outcome, stale, s)
	case *ast.CallExpr: // errors.Is and errors.As of nil are false, and so is the caller's own isHeld
		return outcome && !stale && slices.ContainsFunc(e.Args, func(arg ast.Expr) bool { return uses(f.info, arg, s.err) })
	}
	return false
}

// isNil reports whether e compares v with nil.
func (f *flow) isNil(e *ast.BinaryExpr, v *types.Var) bool {
	return f.info.Types[e.Y].IsNil() && is(f.info, e.X, v) || f.info.Types[e.X].IsNil() && is(f.info, e.Y, v)
}

// isSentinel reports whether e compares v with something that is not nil, as an error of a package.
func (f *flow) isSentinel(e *ast.BinaryExpr, v *types.Var) bool {
	sentinel := func(e ast.Expr) bool {
		sel, ok := ast.Unparen(e).(*ast.SelectorExpr)
		return ok && f.info.Selections[sel] == nil // of a package
	}
	return is(f.info, e.X, v) && sentinel(e.Y) || is(f.info, e.Y, v) && sentinel(e.X)
}

// is reports whether e is the variable v.
func is(info *types.Info, e ast.Expr, v *types.Var) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	return ok && v != nil && info.Uses[id] == v
}

// uses reports whether n names v anywhere.
func uses(info *types.Info, n ast.Node, v *types.Var) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && v != nil && info.Uses[id] == v {
			found = true
		}
		return !found
	})
	return found
}

// assigns reports whether n gives v another value.
func assigns(info *types.Info, n ast.Node, v *types.Var) bool {
	assign, ok := n.(*ast.AssignStmt)
	if !ok || v == nil {
		return false
	}
	return slices.ContainsFunc(assign.Lhs, func(e ast.Expr) bool {
		id, ok := ast.Unparen(e).(*ast.Ident)
		return ok && info.ObjectOf(id) == v
	})
}
