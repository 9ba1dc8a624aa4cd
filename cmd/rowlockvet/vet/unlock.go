package vet

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Unlock finds locks that stay locked on some path.
var Unlock = &analysis.Analyzer{
	Name: "unlockmissing",
	Doc:  "find paths on which a lock is neither unlocked nor passed on",
	URL:  page + "#unlockmissing",
	Run:  runUnlock,
}

func runUnlock(pass *analysis.Pass) (any, error) {
	for _, b := range bodies(pass) {
		if inTest(pass, b.block.Pos()) {
			continue // its locks end with its clients, and it may leave one on purpose
		}
		for _, o := range b.locks {
			if b.isLocal(o.lock) && !isBlank(o.first) && !b.escapes(o.lock) && !b.closesClient(o) {
				b.checkUnlock(o)
			}
		}
	}
	return nil, nil
}

func (b *body) checkUnlock(o *obtained) {
	leak := b.flow().after(o.where, search{lock: o.lock, err: o.err, visit: func(n ast.Node) verdict {
		_, returns := n.(*ast.ReturnStmt)
		switch {
		case n == o.where: // the next round of a loop has forgotten this lock
			return found
		case b.mayRelease(n, o.lock), returns && b.returnsNamed(n, o.lock):
			return stop
		case returns:
			return found
		}
		return goOn
	}})
	if leak == nil {
		return
	}
	release := releaseOf(o.lock)
	report(b.pass, o.call, fmt.Sprintf("%s is not unlocked on the path to line %d, so the key stays "+
		"locked while the process lives: defer %s.%s after the error is checked",
		o.lock.Name(), b.pass.Fset.Position(leak.Pos()).Line, o.lock.Name(), release),
		b.deferUnlock(o, release)...)
}

// mayRelease reports whether n ends the lock, or passes it on to code that may: whatever does more
// than ask it.
func (b *body) mayRelease(n ast.Node, lock *types.Var) (released bool) {
	ast.PreorderStack(n, nil, func(n ast.Node, stack []ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && b.info.Uses[id] == lock {
			released = released || !b.onlyAsks(id, stack)
		}
		return !released
	})
	return released
}

// closesClient reports whether b closes the client of the lock, which releases it.
func (b *body) closesClient(o *obtained) (closes bool) {
	sel, ok := o.call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	client := b.variable(sel.X)
	ast.Inspect(b.block, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		closes = closes || ok && methodOf(b.info, call, client) == "Close"
		return !closes
	})
	return closes
}

// onlyAsks reports whether the lock holds its keys after what the expressions around id do.
func (b *body) onlyAsks(id *ast.Ident, stack []ast.Node) bool {
	if len(stack) == 0 {
		return false
	}
	switch parent := stack[len(stack)-1].(type) {
	case *ast.BinaryExpr:
		return true // compared
	case *ast.CallExpr: // postgres.Fence and UnlockTx
		fn := callee(b.info, parent)
		return fn != nil && ofRowlock(fn.Pkg()) && asking[fn.Name()]
	case *ast.SelectorExpr:
		if len(stack) > 1 {
			call, ok := stack[len(stack)-2].(*ast.CallExpr)
			return ok && call.Fun == parent && asking[parent.Sel.Name] && !awaited(stack)
		}
	}
	return false
}

// awaited reports whether stack is `<-l.Context().Done()`: the lock has ended when it goes on.
func awaited(stack []ast.Node) bool {
	if len(stack) < 5 {
		return false
	}
	receive, ok := stack[len(stack)-5].(*ast.UnaryExpr)
	done, selects := stack[len(stack)-3].(*ast.SelectorExpr)
	return ok && receive.Op == token.ARROW && selects && done.Sel.Name == "Done"
}

// escapes reports whether a function literal, or a pointer to the variable, may release the lock at
// a time that the flow of b does not show.
func (b *body) escapes(lock *types.Var) (escapes bool) {
	ast.PreorderStack(b.block, nil, func(n ast.Node, stack []ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && b.info.Uses[id] == lock {
			address, _ := stack[len(stack)-1].(*ast.UnaryExpr)
			pointed := address != nil && address.Op == token.AND
			escapes = escapes || pointed || inLiteral(stack) && !b.onlyAsks(id, stack)
		}
		return !escapes
	})
	return escapes
}

func inLiteral(stack []ast.Node) bool {
	return slices.ContainsFunc(stack, func(n ast.Node) bool { _, is := n.(*ast.FuncLit); return is })
}

// returnsNamed reports whether a bare return returns lock, as a named result.
func (b *body) returnsNamed(n ast.Node, lock *types.Var) bool {
	return len(n.(*ast.ReturnStmt).Results) == 0 && b.typ.Results != nil &&
		b.typ.Results.Pos() <= lock.Pos() && lock.Pos() < b.typ.Results.End()
}

// deferUnlock writes the missing line, if there is a check of the error to put it behind. If an
// Unlock stands elsewhere, only its writer knows which of them is to stay.
func (b *body) deferUnlock(o *obtained, release string) []analysis.SuggestedFix {
	for _, call := range b.calls {
		if releasing[methodOf(b.info, call, o.lock)] {
			return nil
		}
	}
	check := b.checkAfter(o.where, o.err)
	if check == nil || len(o.call.Args) == 0 {
		return nil
	}
	line := fmt.Sprintf("\ndefer %s.%s(%s)", o.lock.Name(), release, b.text(o.call.Args[0]))
	return []analysis.SuggestedFix{{
		Message:   "Defer " + release,
		TextEdits: []analysis.TextEdit{{Pos: check.End(), End: check.End(), NewText: []byte(line)}},
	}}
}

// checkAfter is the statement after where if it is `if err != nil` and leaves the function.
func (b *body) checkAfter(where ast.Node, err *types.Var) *ast.IfStmt {
	check, ok := b.next(where).(*ast.IfStmt)
	if ok && check.Else == nil && b.leavesOn(check, err) {
		return check
	}
	return nil
}

func (b *body) leavesOn(s *ast.IfStmt, err *types.Var) bool {
	cond, ok := s.Cond.(*ast.BinaryExpr)
	if !ok || cond.Op != token.NEQ || !b.flow().isNil(cond, err) || len(s.Body.List) == 0 {
		return false
	}
	switch last := s.Body.List[len(s.Body.List)-1].(type) {
	case *ast.ReturnStmt:
		return true
	case *ast.ExprStmt:
		call, ok := last.X.(*ast.CallExpr)
		return ok && ends(b.info, call)
	}
	return false
}

// text is the source of e.
func (b *body) text(e ast.Expr) string {
	var out strings.Builder
	if err := format.Node(&out, b.pass.Fset, e); err != nil {
		return "ctx"
	}
	return out.String()
}
