package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// inGo are the folders whose Go has SQL with guards, for each dialect and for all.
func inGo(db string) []string {
	return []string{"dialect/" + folder(db), "forupdate", "optimistic", "tokenfence"}
}

// mutantsInGo returns the mutants of SQL that stands in Go: its locks, and the comparison of a
// version.
func mutantsInGo(root, db string) (out []mutant, err error) {
	for _, dir := range inGo(db) {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*.go"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			found, err := mutantsInSource(db, dir+"/"+filepath.Base(file), string(text))
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	return out, nil
}

func mutantsInSource(db, file, text string) (out []mutant, err error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	add := func(in string, from int, g guard) {
		now := text[:from+g.from] + g.broken + text[from+g.to:]
		out = append(out, mutant{db: db, file: file, statement: in, guard: g.name, was: text, now: now, part: now})
	}
	for _, d := range f.Decls {
		in := declared(d)
		ast.Inspect(d, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				for _, g := range literal(lit.Value) {
					add(in, set.Position(lit.Pos()).Offset, g)
				}
			}
			if sum, ok := n.(*ast.BinaryExpr); ok && compares(sum) {
				g := guard{name: "version = ?", to: len(`" = ?"`), broken: `" >= ?"`}
				add(in, set.Position(sum.Y.Pos()).Offset, g)
			}
			return true
		})
	}
	return out, nil
}

// literal returns the locks in a Go string, whose quotes belong to no SQL.
func literal(quoted string) []guard {
	if !strings.Contains(quoted, "FOR UPDATE") && !strings.Contains(quoted, "FOR SHARE") &&
		!strings.Contains(quoted, "LOCK IN SHARE MODE") && !strings.Contains(quoted, "FOR NO KEY") {
		return nil
	}
	blank := strings.NewReplacer("'", " ", "`", " ", `"`, " ", "%", "?").Replace(quoted)
	f := &finder{sql: blank, tokens: lex(blank)}
	for i := range f.tokens {
		f.lock(i)
	}
	return f.named()
}

// compares reports whether an expression ends a condition with a version: … + " AND " + v + " = ?".
func compares(sum *ast.BinaryExpr) bool {
	last, ok := sum.Y.(*ast.BasicLit)
	if !ok || last.Value != `" = ?"` {
		return false
	}
	and := false
	ast.Inspect(sum.X, func(n ast.Node) bool {
		lit, ok := n.(*ast.BasicLit)
		and = and || ok && lit.Value == `" AND "`
		return true
	})
	return and
}

func declared(d ast.Decl) string {
	if f, ok := d.(*ast.FuncDecl); ok {
		return f.Name.Name
	}
	return "var"
}
