package vet

import (
	"go/ast"

	"golang.org/x/tools/go/analysis"
)

// Dropped finds locks that no variable has, so that no call can unlock them.
var Dropped = &analysis.Analyzer{
	Name: "lockdropped",
	Doc:  "find locks that are obtained and dropped: the key stays locked while the process lives",
	URL:  page + "#lockdropped",
	Run:  runDropped,
}

// page explains the analyzers.
const page = "https://github.com/rowlockdb/rowlock/blob/main/docs/vet.md"

func runDropped(pass *analysis.Pass) (any, error) {
	for _, b := range bodies(pass) {
		for _, o := range b.locks {
			// An underscore in a test, or a check of the error, says that there is no lock to keep.
			fails := isBlank(o.first) && (inTest(pass, o.call.Pos()) || b.refusalChecked(o))
			if isDropped(o) && !fails {
				report(pass, o.call, "the result of "+callee(b.info, o.call).Name()+
					" is dropped, so the key stays locked while the process lives: keep the lock and defer its "+
					releaseOf(callee(b.info, o.call).Signature().Results().At(0)))
			}
		}
	}
	return nil, nil
}

func isDropped(o *obtained) bool {
	switch o.where.(type) {
	case *ast.ExprStmt, *ast.GoStmt, *ast.DeferStmt:
		return true
	}
	return isBlank(o.first)
}

func isBlank(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}

// refusalChecked reports whether `if !errors.Is(err, …)` is what follows, or has the call in it.
func (b *body) refusalChecked(o *obtained) bool {
	check, ok := b.next(o.where).(*ast.IfStmt)
	ast.Inspect(b.block, func(n ast.Node) bool {
		if around, is := n.(*ast.IfStmt); is && around.Init != nil && around.Init == o.where {
			check, ok = around, true
		}
		return !ok
	})
	return ok && b.flow().excludes(check.Cond, false, false, search{err: o.err})
}
