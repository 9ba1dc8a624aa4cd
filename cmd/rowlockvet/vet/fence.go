package vet

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
)

// Fence finds transactions that are begun and written in one function, under a lock of that
// function, without a fence.
var Fence = &analysis.Analyzer{
	Name: "fencemissing",
	Doc:  "find transactions that write under a lock without a fence",
	URL:  page + "#fencemissing",
	Run:  runFence,
}

func runFence(pass *analysis.Pass) (any, error) {
	for _, b := range bodies(pass) {
		for _, s := range b.sections() {
			for _, tx := range b.transactions() {
				if tx.begin == nil || !b.reaches(s, tx.begin) {
					continue
				}
				if write := tx.in.unfenced(tx, s); write != nil {
					report(pass, write, fenceMissing(s, tx), b.insertFence(s, tx)...)
				}
			}
		}
	}
	return nil, nil
}

func fenceMissing(s section, tx transaction) string {
	cure := "call Fence of the lock"
	if s.lock != nil {
		cure = fmt.Sprintf("call %s.Fence", s.lock.Name())
	}
	return fmt.Sprintf("%s writes under a lock without its fence, so a holder that was stopped overwrites the "+
		"work of the next one: %s first in the transaction, or let DoTx begin it", tx.v.Name(), cure)
}

// section is where a body has a lock: after a call that obtains it, or all of a function that a
// method such as Do calls with it.
type section struct {
	from *obtained  // nil for the whole body
	lock *types.Var // nil if it has no name
}

func (b *body) sections() (all []section) {
	for _, o := range b.locks {
		all = append(all, section{o, o.lock})
	}
	if b.given == nil {
		return all
	}
	if fn := callee(b.info, b.given); fn == nil || !ofRowlock(fn.Pkg()) {
		return all
	}
	for _, field := range b.typ.Params.List {
		if !isHandle(b.info.TypeOf(field.Type)) {
			continue
		}
		s := section{}
		if len(field.Names) == 1 && field.Names[0].Name != "_" {
			s.lock = b.variable(field.Names[0])
		}
		all = append(all, s)
	}
	return all
}

// reaches reports whether s has its lock where begin stands.
func (b *body) reaches(s section, begin ast.Node) bool {
	var from ast.Node
	walk := b.toward(begin, s.lock)
	if s.from != nil {
		from, walk.lock, walk.err = s.from.where, s.from.lock, s.from.err
	}
	return b.flow().after(from, walk) != nil
}

// toward searches for a node that is reached before the lock is released.
func (b *body) toward(node ast.Node, lock *types.Var) search {
	return search{visit: func(n ast.Node) verdict {
		switch {
		case contains(n, node):
			return found
		case b.releases(n, lock):
			return stop
		}
		return goOn
	}}
}

// releases reports whether n releases lock at once: not at the end of the function.
func (b *body) releases(n ast.Node, lock *types.Var) (released bool) {
	if _, deferred := n.(*ast.DeferStmt); deferred {
		return false
	}
	ast.Inspect(n, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		released = released || ok && releasing[methodOf(b.info, call, lock)]
		return !released
	})
	return released
}

// unfenced is the first write of tx on a path from its begin, unless tx is passed to another
// function before it: a fence, or one that may call it.
func (b *body) unfenced(tx transaction, s section) ast.Node {
	for _, m := range b.mentions(b.block, tx) {
		if m.kind == written && !b.passedBefore(tx, m.at) && b.isReached(tx, s, m.at) {
			return m.at
		}
	}
	return nil
}

// passedBefore looks at the source instead of the paths, so that a fence which only some paths have
// is taken for a decision.
func (b *body) passedBefore(tx transaction, write ast.Node) bool {
	return slices.ContainsFunc(b.mentions(b.block, tx), func(m mention) bool {
		return m.kind == passed && m.at.Pos() < write.Pos()
	})
}

func (b *body) isReached(tx transaction, s section, write ast.Node) bool {
	var from ast.Node
	if tx.in == b && tx.where != nil {
		from = tx.where
	}
	return b.flow().after(from, b.toward(write, s.lock)) != nil
}

// insertFence writes the missing lines behind the check of the begin's error, where the function
// returns nothing but an error.
func (b *body) insertFence(s section, tx transaction) []analysis.SuggestedFix {
	results := b.typ.Results
	if s.lock == nil || tx.in != b || !tx.isFenceable() || len(tx.begin.Args) == 0 ||
		results == nil || results.NumFields() != 1 || !isError(b.info.TypeOf(results.List[0].Type)) {
		return nil
	}
	check := b.checkAfter(tx.where, tx.err)
	if ctx := tx.begin.Args[0]; check != nil && isContext(b.info.TypeOf(ctx)) {
		at := b.afterDeferred(check)
		text := fmt.Sprintf("\nif err := %s.Fence(%s, %s); err != nil {\nreturn err\n}", s.lock.Name(), b.text(ctx), tx.v.Name())
		return []analysis.SuggestedFix{{
			Message:   "Fence " + tx.v.Name(),
			TextEdits: []analysis.TextEdit{{Pos: at.End(), End: at.End(), NewText: []byte(text)}},
		}}
	}
	return nil
}

// afterDeferred is check, or the deferred rollback that follows it.
func (b *body) afterDeferred(check ast.Stmt) ast.Stmt {
	if next, deferred := b.next(check).(*ast.DeferStmt); deferred {
		return next
	}
	return check
}
