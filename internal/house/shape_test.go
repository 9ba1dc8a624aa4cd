package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A newcomer reads the root package first. Few files, and few of them that can only be understood
// together, are what makes that possible.
const (
	mostFiles = 17
	mostTests = 12
	mostCycle = 5
)

func TestTheRootHasFewFiles(t *testing.T) {
	t.Chdir(root)
	all, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	tests := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return !isTest(name) })
	if n := len(all) - len(tests); n > mostFiles {
		t.Errorf("the root has %d Go files besides its tests, want at most %d: "+
			"what needs no *Client belongs in internal", n, mostFiles)
	}
	if n := len(tests); n > mostTests {
		t.Errorf("the root has %d test files, want at most %d: tests that show no newcomer "+
			"what the package does belong in internal/clienttest or internal/servertest", n, mostTests)
	}
}

func isTest(name string) bool { return strings.HasSuffix(name, "_test.go") }

func TestTheRootHasNoLargeCycleOfFiles(t *testing.T) {
	t.Chdir(root)
	uses := usesAmongFiles(t, ".")
	if len(uses) == 0 {
		t.Fatal("found no file that uses another: does this test still read the right files?")
	}
	for _, cycle := range cycles(uses) {
		if len(cycle) > mostCycle {
			t.Errorf("a cycle of %d files, want at most %d: %q", len(cycle), mostCycle, cycle)
		}
	}
}

func TestCyclesAreFound(t *testing.T) {
	got := cycles(map[string]map[string]bool{
		"a": {"b": true}, "b": {"c": true}, "c": {"a": true, "d": true},
		"d": {"e": true}, "e": {"f": true}, "f": {"e": true}, "g": {"a": true},
	})
	slices.SortFunc(got, slices.Compare)
	want := [][]string{{"a", "b", "c"}, {"e", "f"}}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// usesAmongFiles returns which files of a package use what is declared in which others.
func usesAmongFiles(t *testing.T, dir string) map[string]map[string]bool {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range slices.DeleteFunc(names, isTest) {
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	// Types of other packages are unknown, which are errors. They do not matter here.
	cfg := types.Config{Importer: empty{}, Error: func(error) {}}
	pkg, _ := cfg.Check("root", fset, files, info)
	in := func(pos token.Pos) string { return filepath.Base(fset.Position(pos).Filename) }
	uses := make(map[string]map[string]bool)
	for id, used := range info.Uses {
		from, to := in(id.Pos()), in(used.Pos())
		if used.Pkg() != pkg || !used.Pos().IsValid() || from == to {
			continue
		}
		if uses[from] == nil {
			uses[from] = make(map[string]bool)
		}
		uses[from][to] = true
	}
	return uses
}

// empty imports packages in which nothing is declared.
type empty struct{}

func (empty) Import(importPath string) (*types.Package, error) {
	p := types.NewPackage(importPath, path.Base(importPath))
	p.MarkComplete()
	return p, nil
}

// cycles returns the sets of two files or more of which each leads to each other, sorted.
func cycles(uses map[string]map[string]bool) (found [][]string) {
	reached := make(map[string]map[string]bool)
	for from := range uses {
		reached[from] = reachable(uses, from)
	}
	seen := make(map[string]bool)
	for _, from := range slices.Sorted(maps.Keys(uses)) {
		if seen[from] || !reached[from][from] {
			continue
		}
		var cycle []string
		for to := range reached[from] {
			if reached[to][from] {
				cycle, seen[to] = append(cycle, to), true
			}
		}
		slices.Sort(cycle)
		found = append(found, cycle)
	}
	return found
}

// reachable returns the files that from leads to, itself only if it is in a cycle.
func reachable(uses map[string]map[string]bool, from string) map[string]bool {
	reached := make(map[string]bool)
	next := []string{from}
	for len(next) > 0 {
		file := next[0]
		next = next[1:]
		for to := range uses[file] {
			if !reached[to] {
				reached[to] = true
				next = append(next, to)
			}
		}
	}
	return reached
}
