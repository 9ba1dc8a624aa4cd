package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// A caller that must import lease to handle an error has met the seam of the stores. Every error
// of lease therefore has the same name in package rowlock.
func TestErrorsOfLeaseHaveTheirNamesHere(t *testing.T) {
	t.Chdir(root)
	ours := make(map[string]string)
	for _, s := range specs(t, ".") {
		for name, is := range s {
			ours[name] = is
		}
	}
	found := 0
	for _, s := range specs(t, "lease") {
		for name := range s {
			isError := strings.HasPrefix(name, "Err") || strings.HasSuffix(name, "Error")
			if !isError || !ast.IsExported(name) {
				continue
			}
			found++
			if want := "lease." + name; ours[name] != want {
				t.Errorf("errors.go has %s = %q, want %s", name, ours[name], want)
			}
		}
	}
	if found < 20 {
		t.Errorf("found %d errors in lease: does this test still read the right files?", found)
	}
}

// specs returns, for each file of a package, what its exported variables and types are declared as:
// "lease.ErrHeld", or "" for anything that is no name of another package.
func specs(t *testing.T, dir string) (all []map[string]string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		declared := make(map[string]string)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				return false // what it declares is local
			case *ast.TypeSpec:
				declared[n.Name.Name] = qualified(n.Type)
			case *ast.ValueSpec:
				for i, name := range n.Names {
					declared[name.Name] = ""
					if len(n.Values) == len(n.Names) {
						declared[name.Name] = qualified(n.Values[i])
					}
				}
			}
			return true
		})
		all = append(all, declared)
	}
	return all
}

func qualified(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if pkg, ok := s.X.(*ast.Ident); ok {
			return pkg.Name + "." + s.Sel.Name
		}
	}
	return ""
}
