package vet

import (
	"fmt"
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// Loop finds loops that lock key after key and keep them all.
var Loop = &analysis.Analyzer{
	Name: "lockloop",
	Doc:  "find loops that lock each of several keys and keep the locks",
	URL:  page + "#lockloop",
	Run:  runLoop,
}

func runLoop(pass *analysis.Pass) (any, error) {
	for _, b := range bodies(pass) {
		for _, o := range b.locks {
			name := callee(b.info, o.call).Name()
			if all := together[name]; all != "" && b.variesIn(b.loopOf(o), o) && b.keepsAll(o) {
				report(pass, o.call, fmt.Sprintf("%s in a loop keeps a lock for each key, and two callers with "+
					"another order wait for each other: lock the keys together with %s", name, all))
			}
		}
	}
	return nil, nil
}

// together has the call that locks several keys in one order. TryLock waits for none, and may take
// those that are free.
var together = map[string]string{"Lock": "LockAll", "RLock": "RLockAll"}

// loopOf is the innermost loop around the call, or nil if its rounds are not known before it
// begins. Keys that come one at a time, as from a channel, cannot be locked together.
func (b *body) loopOf(o *obtained) (loop ast.Node) {
	inspectOwn(b.block, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.ForStmt:
			if _, counts := n.Post.(*ast.IncDecStmt); contains(n.Body, o.call) {
				loop = onlyIf(counts, n)
			}
		case *ast.RangeStmt:
			if contains(n.Body, o.call) {
				loop = onlyIf(b.isCollection(n.X), n)
			}
		}
	})
	return loop
}

func onlyIf(known bool, loop ast.Node) ast.Node {
	if known {
		return loop
	}
	return nil
}

func (b *body) isCollection(e ast.Expr) bool {
	switch b.info.TypeOf(e).Underlying().(type) {
	case *types.Slice, *types.Array, *types.Map, *types.Basic:
		return true
	}
	return false
}

// variesIn reports whether only the key is another one in each round. LockAll is of one client.
func (b *body) variesIn(loop ast.Node, o *obtained) bool {
	return loop != nil && len(o.call.Args) > 1 && b.namesOf(loop, o.call.Args[1]) && !b.namesOf(loop, o.call.Fun)
}

// namesOf reports whether e names a variable of the loop.
func (b *body) namesOf(loop ast.Node, e ast.Expr) (varies bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			v, isVar := b.info.Uses[id].(*types.Var)
			varies = varies || isVar && !v.IsField() && loop.Pos() <= v.Pos() && v.Pos() < loop.End()
		}
		return !varies
	})
	return varies
}

// keepsAll reports whether a round can begin while the lock of the one before is held.
func (b *body) keepsAll(o *obtained) bool {
	switch {
	case o.first == nil || isBlank(o.first):
		return false // it is dropped, or an argument
	case o.lock == nil:
		_, indexed := o.first.(*ast.IndexExpr)
		return indexed
	}
	return b.flow().after(o.where, search{lock: o.lock, err: o.err, visit: func(n ast.Node) verdict {
		switch {
		case n == o.where:
			return found
		case b.maySpend(n, o.lock):
			return stop
		}
		return goOn
	}}) != nil
}

// maySpend reports whether n may release the lock in this round. What is deferred runs after all
// rounds, and what is stored is kept.
func (b *body) maySpend(n ast.Node, lock *types.Var) (spends bool) {
	if _, deferred := n.(*ast.DeferStmt); deferred {
		return false
	}
	ast.PreorderStack(n, nil, func(n ast.Node, stack []ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && b.info.Uses[id] == lock {
			spends = spends || inLiteral(stack) || !b.onlyAsks(id, stack) && !b.isStored(stack)
		}
		return !spends
	})
	return spends
}

// isStored reports whether a variable around stack has its value: `held = append(held, l)`.
func (b *body) isStored(stack []ast.Node) bool {
	for i := len(stack) - 1; i >= 0; i-- {
		switch n := stack[i].(type) {
		case *ast.CompositeLit, *ast.KeyValueExpr:
		case *ast.CallExpr:
			id, ok := n.Fun.(*ast.Ident)
			if !ok || b.info.Uses[id] != types.Universe.Lookup("append") {
				return false
			}
		case *ast.AssignStmt:
			return true
		default:
			return false
		}
	}
	return false
}
