package vet

import (
	"go/ast"
	"go/constant"
	"go/types"
	"regexp"
	"slices"
	"strings"
)

type kind int

const (
	harmless kind = iota
	written
	passed // to code that may have fenced it
)

// mention is a use of a transaction.
type mention struct {
	kind kind
	at   ast.Node
}

// mentions finds in source order what n does with tx, and with the queries of sqlc made of it.
func (b *body) mentions(n ast.Node, tx transaction) (all []mention) {
	vars := map[*types.Var]bool{tx.v: true}
	ast.PreorderStack(n, nil, func(n ast.Node, stack []ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if v, isVar := b.info.Uses[id].(*types.Var); ok && isVar && vars[v] && id.Pos() > tx.begin.Pos() {
			m := b.mention(id, stack, vars)
			if m.kind == written && inLiteral(stack) {
				m.kind = passed // when it runs is unknown
			}
			all = append(all, m)
		}
		return true
	})
	return all
}

// mention climbs from id to the end of the chain of calls that begins with it.
func (b *body) mention(id *ast.Ident, stack []ast.Node, vars map[*types.Var]bool) mention {
	var at ast.Expr = id
	var calls []*ast.CallExpr
	for i := len(stack) - 1; i >= 0; i-- {
		switch parent := stack[i].(type) {
		case *ast.ParenExpr, *ast.StarExpr:
			at = parent.(ast.Expr)
		case *ast.SelectorExpr:
			at = parent
		case *ast.CallExpr:
			switch {
			case parent.Fun == at: // a method of what stands before it
				calls = append(calls, parent)
			case b.isQueries(b.info.TypeOf(parent)): // queries.WithTx(tx), New(tx)
				calls = nil
			case len(calls) == 0:
				return mention{b.argument(parent), parent}
			default:
				return mention{b.chain(calls), at}
			}
			at = parent
		case *ast.AssignStmt:
			if len(calls) == 0 && b.isQueries(b.info.TypeOf(at)) {
				vars[b.variable(parent.Lhs[0])] = true // it has the queries made of a transaction
				return mention{harmless, at}
			}
			if len(calls) == 0 && slices.Contains(parent.Lhs, ast.Expr(id)) {
				return mention{harmless, at}
			}
			return b.ended(calls, at)
		case *ast.BinaryExpr:
			if len(calls) == 0 {
				return mention{harmless, at} // compared
			}
			return b.ended(calls, at)
		default:
			return b.ended(calls, at)
		}
	}
	return b.ended(calls, at)
}

func (b *body) ended(calls []*ast.CallExpr, at ast.Expr) mention {
	if len(calls) == 0 {
		return mention{passed, at}
	}
	return mention{b.chain(calls), at}
}

// isQueries reports whether t is the type that sqlc generates: it has a method WithTx that returns
// the type itself.
func (b *body) isQueries(t types.Type) bool {
	if t == nil {
		return false
	}
	found, _, _ := types.LookupFieldOrMethod(t, true, nil, "WithTx")
	fn, ok := found.(*types.Func)
	return ok && fn.Signature().Results().Len() == 1 && types.Identical(fn.Signature().Results().At(0).Type(), t)
}

// argument is what a call does with a transaction that it is given.
func (b *body) argument(call *ast.CallExpr) kind {
	fn := callee(b.info, call)
	if fn == nil || fn.Pkg() == nil || !ofLibrary(fn.Pkg().Path()) {
		return passed
	}
	return b.statement(call)
}

// chain is what calls such as tx.Model(&a).Where(…).Update(…) do.
func (b *body) chain(calls []*ast.CallExpr) kind {
	for _, call := range calls {
		if k := b.statement(call); k != harmless {
			return k
		}
	}
	return harmless
}

// writers are the methods that write, whatever their arguments are.
var writers = map[string]bool{
	"Create": true, "CreateInBatches": true, "Save": true, "Update": true, "Updates": true,
	"UpdateColumn": true, "UpdateColumns": true, "Delete": true, "FirstOrCreate": true, // gorm
	"NewInsert": true, "NewUpdate": true, "NewDelete": true, "NewMerge": true, // bun
	"CopyFrom": true, // pgx
}

// statements are the methods whose SQL says whether they write.
var statements = []string{"Exec", "NamedExec", "MustExec", "Query", "NamedQuery", "Get", "Select", "Raw", "Prepare"}

// statement is what one call of a library does.
func (b *body) statement(call *ast.CallExpr) kind {
	fn := callee(b.info, call)
	if fn == nil {
		return harmless
	}
	if recv := fn.Signature().Recv(); recv != nil && b.isQueries(recv.Type()) {
		return b.generated(fn)
	}
	if fn.Pkg() == nil || !ofLibrary(fn.Pkg().Path()) {
		return harmless
	}
	if writers[fn.Name()] {
		return written
	}
	for _, s := range statements {
		if strings.HasPrefix(fn.Name(), s) {
			return b.sql(call, strings.Contains(fn.Name(), "Exec"))
		}
	}
	return harmless
}

// generated is what a method of sqlc's does: one that returns an error alone has no rows to return.
func (b *body) generated(fn *types.Func) kind {
	results := fn.Signature().Results()
	if results.Len() == 1 && isError(results.At(0).Type()) {
		return written
	}
	for _, verb := range []string{"Insert", "Update", "Delete", "Create", "Upsert"} {
		if strings.HasPrefix(fn.Name(), verb) {
			return written
		}
	}
	return harmless
}

// sql looks at the first word of a statement that is a constant. Another one is a write if it is
// executed for no rows.
func (b *body) sql(call *ast.CallExpr, executed bool) kind {
	for _, arg := range call.Args {
		tv := b.info.Types[arg]
		if basic, ok := tv.Type.Underlying().(*types.Basic); !ok || basic.Info()&types.IsString == 0 {
			continue
		}
		if tv.Value == nil {
			break
		}
		switch firstWord(constant.StringVal(tv.Value)) {
		case "INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "TRUNCATE":
			return written
		case "WITH", "CALL": // what they do is said later
		default:
			return harmless
		}
		break
	}
	if executed {
		return written
	}
	return harmless
}

// verb is the first word of a statement, behind comments such as "-- name: UpdateBalance :exec".
var verb = regexp.MustCompile(`^(?:\s|--.*|/\*(?s:.*?)\*/)*(\w+)`)

func firstWord(sql string) string {
	if found := verb.FindStringSubmatch(sql); found != nil {
		return strings.ToUpper(found[1])
	}
	return ""
}
