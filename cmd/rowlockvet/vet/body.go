package vet

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// body is one function: declared, or a literal. The literals within it are bodies of their own.
type body struct {
	pass  *analysis.Pass
	info  *types.Info
	typ   *ast.FuncType
	block *ast.BlockStmt
	calls []*ast.CallExpr
	locks []*obtained

	literals []*body       // within it, but not within each other
	around   *body         // the body that a literal stands in
	given    *ast.CallExpr // the call that a literal is an argument of

	graph *flow
}

// obtained is a call that returns a handle.
type obtained struct {
	call  *ast.CallExpr
	where ast.Node   // the statement, or the declaration of a variable
	first ast.Expr   // what the handle is assigned to; nil if it is not
	lock  *types.Var // nil if the handle has no variable
	err   *types.Var // nil if the error has none
}

// bodies finds the functions of a package, and the locks that they obtain.
func bodies(pass *analysis.Pass) (all []*body) {
	for _, file := range pass.Files {
		ofNode := make(map[ast.Node]*body)
		ast.PreorderStack(file, nil, func(n ast.Node, stack []ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Body != nil {
					ofNode[n] = &body{pass: pass, info: pass.TypesInfo, typ: n.Type, block: n.Body}
					all = append(all, ofNode[n])
				}
			case *ast.FuncLit:
				b := &body{pass: pass, info: pass.TypesInfo, typ: n.Type, block: n.Body}
				if call, ok := stack[len(stack)-1].(*ast.CallExpr); ok && call.Fun != n {
					b.given = call
				}
				if b.around = innermost(ofNode, stack); b.around != nil {
					b.around.literals = append(b.around.literals, b)
				}
				ofNode[n] = b
				all = append(all, b)
			case *ast.CallExpr:
				if b := innermost(ofNode, stack); b != nil {
					b.calls = append(b.calls, n)
					if obtains(b.info, n) {
						b.locks = append(b.locks, b.obtained(n, stack))
					}
				}
			}
			return true
		})
	}
	return all
}

func innermost(ofNode map[ast.Node]*body, stack []ast.Node) *body {
	for i := len(stack) - 1; i >= 0; i-- {
		if b := ofNode[stack[i]]; b != nil {
			return b
		}
	}
	return nil
}

// obtained describes a call below stack.
func (b *body) obtained(call *ast.CallExpr, stack []ast.Node) *obtained {
	o := &obtained{call: call, where: call}
	parent := stack[len(stack)-1]
	switch parent.(type) {
	case *ast.AssignStmt, *ast.ValueSpec, *ast.ExprStmt, *ast.GoStmt, *ast.DeferStmt:
		o.where = parent
	}
	if to, _ := assigned(parent); len(to) == 2 {
		o.first, o.lock, o.err = to[0], b.variable(to[0]), b.variable(to[1])
	}
	return o
}

// next is the statement that stands after another one in its block, or nil.
func (b *body) next(where ast.Node) (next ast.Stmt) {
	ast.Inspect(b.block, func(n ast.Node) bool {
		if block, ok := n.(*ast.BlockStmt); ok {
			for i, s := range block.List[:max(len(block.List)-1, 0)] {
				if s == where {
					next = block.List[i+1]
				}
			}
		}
		return next == nil
	})
	return next
}

// variable is the variable that e names, or nil.
func (b *body) variable(e ast.Expr) *types.Var {
	id, ok := ast.Unparen(e).(*ast.Ident)
	if !ok {
		return nil
	}
	v, _ := b.info.ObjectOf(id).(*types.Var)
	return v
}

// isLocal reports whether b declares v. Of another variable more is known elsewhere.
func (b *body) isLocal(v *types.Var) bool {
	return v != nil && b.typ.Pos() <= v.Pos() && v.Pos() < b.block.End()
}

// flow is the control flow of b.
func (b *body) flow() *flow {
	if b.graph == nil {
		b.graph = newFlow(b)
	}
	return b.graph
}
