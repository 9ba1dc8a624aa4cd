package vet

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// OuterContext finds functions that Do or DoTx calls, and that use the caller's context instead of
// their own.
var OuterContext = &analysis.Analyzer{
	Name: "outerctx",
	Doc:  "find uses of the outer ctx in a function that runs under a lock",
	URL:  page + "#outerctx",
	Run:  runOuterContext,
}

func runOuterContext(pass *analysis.Pass) (any, error) {
	for _, b := range bodies(pass) {
		outer := b.outerContext()
		if outer == nil {
			continue
		}
		if used := b.worksWith(outer); len(used) > 0 {
			report(pass, used[0], fmt.Sprintf("%s is the caller's context and goes on when the lock is lost: "+
				"use the one that the function gets from %s", outer.Name(), callee(b.info, b.given).Name()),
				b.useOwn(outer, used)...)
		}
	}
	return nil, nil
}

// under are the functions that call another one under a lock.
var under = map[string]bool{
	"Do": true, "DoShared": true, "DoTx": true, "DoAllTx": true, "DoTxIn": true, "DoTxOn": true,
}

// outerContext is the variable that is given as the context to the call that runs b under a lock,
// or nil.
func (b *body) outerContext() *types.Var {
	if b.given == nil || len(b.typ.Params.List) == 0 || !isContext(b.info.TypeOf(b.typ.Params.List[0].Type)) {
		return nil
	}
	fn := callee(b.info, b.given)
	if fn == nil || fn.Pkg() == nil || !under[fn.Name()] {
		return nil
	}
	if path := fn.Pkg().Path(); path != home && path != home+"/dialect/postgres" {
		return nil
	}
	if v := b.variable(b.given.Args[0]); v != nil && isContext(v.Type()) {
		return v
	}
	return nil
}

// worksWith returns the places where b does something with ctx. To ask whether the caller has
// canceled, or to leave cancellation behind, takes the outer one. Unlock uses nothing of it but its
// values.
func (b *body) worksWith(ctx *types.Var) (used []*ast.Ident) {
	ast.PreorderStack(b.block, nil, func(n ast.Node, stack []ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && b.info.Uses[id] == ctx && !b.asks(stack) {
			used = append(used, id)
		}
		return true
	})
	return used
}

func (b *body) asks(stack []ast.Node) bool {
	switch parent := stack[len(stack)-1].(type) {
	case *ast.SelectorExpr:
		return true // ctx.Err(), ctx.Done()
	case *ast.CallExpr:
		fn := callee(b.info, parent)
		return fn != nil && fn.Pkg() != nil && (ofRowlock(fn.Pkg()) && releasing[fn.Name()] ||
			fn.Pkg().Path() == "context" && (fn.Name() == "WithoutCancel" || fn.Name() == "Cause"))
	}
	return false
}

// useOwn names the parameter as the outer variable, if it has no name, or uses its name.
func (b *body) useOwn(outer *types.Var, used []*ast.Ident) []analysis.SuggestedFix {
	var edits []analysis.TextEdit
	first := b.typ.Params.List[0]
	switch {
	case len(first.Names) == 0:
		for i, field := range b.typ.Params.List {
			name := "_ "
			if i == 0 {
				name = outer.Name() + " "
			}
			edits = append(edits, edit(field.Pos(), field.Pos(), name))
		}
	case first.Names[0].Name == "_":
		edits = append(edits, edit(first.Names[0].Pos(), first.Names[0].End(), outer.Name()))
	default:
		for _, id := range used {
			edits = append(edits, edit(id.Pos(), id.End(), first.Names[0].Name))
		}
	}
	return []analysis.SuggestedFix{{Message: "Use the function's own context", TextEdits: edits}}
}

func edit(pos, end token.Pos, text string) analysis.TextEdit {
	return analysis.TextEdit{Pos: pos, End: end, NewText: []byte(text)}
}
