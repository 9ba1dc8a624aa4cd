package vet

import (
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// libraries are those whose transactions are known. pgx has a path for each major version.
var libraries = []string{
	"database/sql", "github.com/jmoiron/sqlx", "github.com/jackc/pgx", "gorm.io/gorm", "github.com/uptrace/bun",
}

func ofLibrary(path string) bool {
	return slices.ContainsFunc(libraries, func(l string) bool {
		return path == l || strings.HasPrefix(path, l+"/")
	})
}

// isTransaction reports whether t is what a library's Begin returns. gorm has one type for pools
// and transactions.
func isTransaction(t types.Type) bool {
	name := typeName(t)
	dot := strings.LastIndexByte(name, '.')
	return dot > 0 && ofLibrary(name[:dot]) && (name[dot:] == ".Tx" || name == "gorm.io/gorm.DB")
}

// transaction is one that a body begins, and that a variable has.
type transaction struct {
	v     *types.Var
	err   *types.Var
	begin *ast.CallExpr
	where ast.Node // the statement; nil if begin calls a function with the transaction
	in    *body    // where it is used: that function, or the body that begins it
}

// isFenceable reports whether the transaction is a rowlock.Tx as it is.
func (tx transaction) isFenceable() bool {
	name := typeName(tx.v.Type())
	return name == "database/sql.Tx" || name == "github.com/jmoiron/sqlx.Tx" || name == "github.com/uptrace/bun.Tx"
}

// transactions are those of b: `tx, err := db.BeginTx(…)`, and the functions that
// `db.Transaction(func(tx *gorm.DB) error {…})` calls.
func (b *body) transactions() (all []transaction) {
	for _, other := range b.literals {
		if other.given != nil && b.runsTransaction(other.given) {
			if v := other.transactionParam(); v != nil {
				all = append(all, transaction{v: v, begin: other.given, in: other})
			}
		}
	}
	inspectOwn(b.block, func(n ast.Node) {
		to, values := assigned(n)
		if len(values) != 1 {
			return
		}
		call, ok := values[0].(*ast.CallExpr)
		if v := b.variable(to[0]); ok && b.isLocal(v) && isTransaction(v.Type()) && b.begins(call) {
			tx := transaction{v: v, begin: call, where: n, in: b}
			if len(to) == 2 {
				tx.err = b.variable(to[1])
			}
			all = append(all, tx)
		}
	})
	return all
}

// inspectOwn calls f with the nodes of a body, without those of the function literals in it.
func inspectOwn(block *ast.BlockStmt, f func(ast.Node)) {
	ast.Inspect(block, func(n ast.Node) bool {
		if _, literal := n.(*ast.FuncLit); literal {
			return false
		}
		if n != nil {
			f(n)
		}
		return true
	})
}

// begins reports whether call begins a transaction that no other function has seen. A method of the
// user's may fence it; one of an interface is taken for the library's behind it. Begin of a
// transaction makes a savepoint, which the fence before it covers.
func (b *body) begins(call *ast.CallExpr) bool {
	fn := callee(b.info, call)
	if fn == nil || !strings.HasPrefix(fn.Name(), "Begin") && !strings.HasPrefix(fn.Name(), "MustBegin") {
		return false
	}
	return b.isLibrarys(fn) && !b.isWithin(call)
}

var runners = map[string]bool{
	"Transaction": true, "RunInTx": true, "BeginFunc": true, "BeginTxFunc": true,
}

// runsTransaction reports whether call begins a transaction, calls a function with it, and commits.
func (b *body) runsTransaction(call *ast.CallExpr) bool {
	fn := callee(b.info, call)
	return fn != nil && runners[fn.Name()] && b.isLibrarys(fn) && !b.isWithin(call)
}

func (b *body) isLibrarys(fn *types.Func) bool {
	if fn.Pkg() != nil && ofLibrary(fn.Pkg().Path()) {
		return true
	}
	recv := fn.Signature().Recv()
	return recv != nil && types.IsInterface(recv.Type())
}

// isWithin reports whether call is a method of a transaction, or is given one.
func (b *body) isWithin(call *ast.CallExpr) bool {
	at := call.Args
	if sel, ok := call.Fun.(*ast.SelectorExpr); ok {
		at = append([]ast.Expr{sel.X}, at...)
	}
	for _, e := range at {
		if t := b.info.TypeOf(e); t == nil || !isTransaction(t) {
			continue
		}
		if typeName(b.info.TypeOf(e)) != "gorm.io/gorm.DB" || b.isGormTransaction(e) {
			return true
		}
	}
	return false
}

// isGormTransaction reports whether e is a method's receiver that a function around it was given.
func (b *body) isGormTransaction(e ast.Expr) bool {
	v := b.variable(rootOf(e))
	for at := b; at != nil && v != nil; at = at.around {
		if at.given != nil && v == at.transactionParam() {
			return true
		}
	}
	return false
}

// rootOf is what a chain of calls and selectors begins with.
func rootOf(e ast.Expr) ast.Expr {
	for {
		switch x := e.(type) {
		case *ast.CallExpr:
			e = x.Fun
		case *ast.SelectorExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return e
		}
	}
}

// transactionParam is the parameter of b that is a transaction, or nil.
func (b *body) transactionParam() *types.Var {
	for _, field := range b.typ.Params.List {
		if len(field.Names) == 1 && isTransaction(b.info.TypeOf(field.Type)) {
			return b.variable(field.Names[0])
		}
	}
	return nil
}
