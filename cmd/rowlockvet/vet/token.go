package vet

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"
)

// Token finds comparisons of a lock's token with a number that is not rowlock's.
var Token = &analysis.Analyzer{
	Name: "tokencompared",
	Doc:  "find tokens that are compared in Go instead of in the statement that writes",
	URL:  page + "#tokencompared",
	Run:  runToken,
}

func runToken(pass *analysis.Pass) (any, error) {
	for _, file := range pass.Files {
		if inTest(pass, file.FileStart) {
			continue // a test compares tokens to see that they increase
		}
		t := tokens{pass.TypesInfo, make(map[*types.Var]bool)}
		ast.Inspect(file, t.follow)
		ast.Inspect(file, func(n ast.Node) bool {
			if e, ok := n.(*ast.BinaryExpr); ok && compares[e.Op] && t.isCompared(e) {
				report(pass, e, "a token is compared in Go, and a newer holder can write between this and your "+
					"write: let tokenfence compare it in the transaction that writes (Pass), or in the store (Swap)")
			}
			return true
		})
	}
	return nil, nil
}

var compares = map[token.Token]bool{
	token.LSS: true, token.GTR: true, token.LEQ: true, token.GEQ: true, token.EQL: true, token.NEQ: true,
}

// tokens knows which variables of a file have a token.
type tokens struct {
	info *types.Info
	vars map[*types.Var]bool
}

// follow notes the variables that are given a token.
func (t tokens) follow(n ast.Node) bool {
	if to, values := assigned(n); len(to) == len(values) {
		for i, e := range values {
			id, named := to[i].(*ast.Ident)
			if v, ok := t.info.ObjectOf(id).(*types.Var); named && ok && t.isToken(e) {
				t.vars[v] = true
			}
		}
	}
	return true
}

// isCompared reports whether e compares a lock's token with a number that came from elsewhere. A
// constant says whether there is a token, and two of rowlock's tell which lock is newer.
func (t tokens) isCompared(e *ast.BinaryExpr) bool {
	return t.isToken(e.X) && t.isForeign(e.Y) || t.isToken(e.Y) && t.isForeign(e.X)
}

// isToken reports whether e is the result of Token, as it is or converted.
func (t tokens) isToken(e ast.Expr) bool {
	switch e := t.bare(e).(type) {
	case *ast.Ident:
		v, ok := t.info.Uses[e].(*types.Var)
		return ok && t.vars[v]
	case *ast.CallExpr:
		fn := callee(t.info, e)
		return fn != nil && fn.Name() == "Token" && fn.Signature().Recv() != nil &&
			isHandle(fn.Signature().Recv().Type())
	}
	return false
}

func (t tokens) isForeign(e ast.Expr) bool {
	e = t.bare(e)
	if t.info.Types[e].Value != nil || t.isToken(e) {
		return false
	}
	switch e := e.(type) {
	case *ast.CallExpr:
		fn := callee(t.info, e)
		return fn == nil || !ofRowlock(fn.Pkg())
	case *ast.SelectorExpr: // the field of a record that rowlock has read
		return !ofRowlock(t.info.Uses[e.Sel].Pkg())
	}
	return true
}

// bare is e without parentheses and conversions.
func (t tokens) bare(e ast.Expr) ast.Expr {
	for {
		e = ast.Unparen(e)
		call, ok := e.(*ast.CallExpr)
		if !ok || len(call.Args) != 1 || !t.info.Types[call.Fun].IsType() {
			return e
		}
		e = call.Args[0]
	}
}
