package vet

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/types/typeutil"
)

// home is the import path of rowlock. Its packages are below it.
const home = "github.com/rowlockdb/rowlock"

func ofRowlock(p *types.Package) bool {
	return p != nil && (p.Path() == home || strings.HasPrefix(p.Path(), home+"/"))
}

// handles are the types that hold keys until they are released.
var handles = map[string]bool{
	home + ".Lock": true, home + ".Locks": true, home + "/semaphore.Permit": true,
}

// obtaining are the names of the methods that return a handle. Other calls return one that an
// earlier call has obtained: Locks.Lock, or the caller's own functions.
var obtaining = map[string]bool{
	"Lock": true, "LockAll": true, "LockAny": true, "RLock": true, "RLockAll": true,
	"TryLock": true, "TryLockAll": true, "TryLockAny": true, "TryRLock": true, "TryRLockAll": true,
	"All": true, "Any": true, "TryAny": true, // striped
	"Acquire": true, "TryAcquire": true, // semaphore
}

// releasing are the methods that end a handle. UnlockTx is not: the client renews the lease and
// counts it as held until Unlock.
var releasing = map[string]bool{"Unlock": true, "UnlockNow": true, "Release": true}

// asking are the methods after which a handle holds its keys as before.
var asking = map[string]bool{
	"Context": true, "Deadline": true, "Key": true, "Keys": true, "Token": true, "Progress": true,
	"DoTx": true, "Fence": true, "FenceIn": true, "UnlockTx": true, "UnlockIn": true, "Downgrade": true,
	"ID": true,
}

// typeName is the import path and the name of a named type or of a pointer to one.
func typeName(t types.Type) string {
	t = types.Unalias(t)
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	named, ok := t.(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return ""
	}
	return named.Obj().Pkg().Path() + "." + named.Obj().Name()
}

func isHandle(t types.Type) bool {
	_, pointer := types.Unalias(t).(*types.Pointer)
	return pointer && handles[typeName(t)]
}

func isContext(t types.Type) bool { return typeName(t) == "context.Context" }

func isError(t types.Type) bool { return types.Identical(t, types.Universe.Lookup("error").Type()) }

// callee is the function or method that call names, or nil.
func callee(info *types.Info, call *ast.CallExpr) *types.Func {
	fn, _ := typeutil.Callee(info, call).(*types.Func)
	return fn
}

// obtains reports whether call returns a handle of its own and an error. The method may be of an
// interface of the user's, who wants to test without a database.
func obtains(info *types.Info, call *ast.CallExpr) bool {
	fn := callee(info, call)
	if fn == nil || !obtaining[fn.Name()] {
		return false
	}
	sig := fn.Signature()
	results := sig.Results()
	return sig.Recv() != nil && results.Len() == 2 &&
		isHandle(results.At(0).Type()) && isError(results.At(1).Type())
}

// assigned returns what n gives values to, and the values.
func assigned(n ast.Node) (to, values []ast.Expr) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		return n.Lhs, n.Rhs
	case *ast.ValueSpec:
		for _, name := range n.Names {
			to = append(to, name)
		}
		return to, n.Values
	}
	return nil, nil
}

// methodOf returns the name of the method that call calls on the variable v itself, or "".
func methodOf(info *types.Info, call *ast.CallExpr, v *types.Var) string {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !is(info, sel.X, v) {
		return ""
	}
	return sel.Sel.Name
}

// releaseOf is what ends a handle in the words of its type.
func releaseOf(v *types.Var) string {
	if strings.HasSuffix(typeName(v.Type()), ".Permit") {
		return "Release"
	}
	return "Unlock"
}
