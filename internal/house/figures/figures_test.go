package figures

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// small is a tree of which each figure is known.
var small = map[string]string{
	"go.mod": "module github.com/rowlockdb/rowlock\n\ngo 1.26.0\n",
	"root.go": `package rowlock

import (
	"context"

	"github.com/rowlockdb/rowlock/internal/used"
)

func Lock(context.Context) used.Large { return used.Large{} }
`,
	"other_test.go": "package rowlock\n\nfunc inATest(a, b, c, d, e, f int) {}\n",
	"internal/used/used.go": `package used

type Large struct{ a, b, c, d, e, f, g, h, i, j, k, l, m int }

type Fits struct{ a, b, c, d, e, f, g, h, i, j, k, l int }

func (Large) six(a, b, c int, d, e, f string) {}

func five(a, b, c, d, e int) { one() }
`,
	"internal/used/cycle.go": `package used

type few interface{ A(); B(); C(); D(); E(); F() }

type many interface {
	few
	G(); H(); I(); J(); K(); L(); M()
}

func one() { five(1, 2, 3, 4, 5) }
`,
	"internal/used/alone.go": "package used\n\nfunc two() { one() }\n",
	"internal/rig/rig.go":    "package rig\n\nfunc six(a, b, c, d, e, f int) {}\n",
	"bench/main.go":          "package main\n\nfunc six(a, b, c, d, e, f int) {}\n\nfunc main() {}\n",
	"locktest/locktest.go":   "package locktest\n",
	"dialect/mysql/mysql.go": "package mysql\n\nimport _ \"embed\"\n\n//go:embed a.sql\nvar text string\n",
	"dialect/mysql/a.sql":    "-- one\nSELECT 1;\n",
	"adapters/one/go.mod":    "module github.com/rowlockdb/rowlock/adapters/one\n\ngo 1.26.0\n",
	"adapters/one/doc.go":    "// Package one\npackage one\n",
	"adapters/one/one.go":    "package one\n\nfunc six(a, b, c, d, e, f int) {}\n",
	"adapters/two/go.mod":    "module github.com/rowlockdb/rowlock/adapters/two\n\ngo 1.26.0\n",
	"adapters/two/two.go":    "package two\n",
	"wlock/go.mod":           "module github.com/rowlockdb/rowlock/wlock\n\ngo 1.26.0\n",
	"wlock/doc.go":           "// Package wlock\npackage wlock\n",
	"wlock/frame/frame.go":   "package frame\n\nvar One int\n",
	"wlock/double_test.go":   "package wlock\n",
	"wlock/wtest/double.go":  "package wtest\n",
	"cmd/rowlock/go.mod":     "module github.com/rowlockdb/rowlock/cmd/rowlock\n\ngo 1.26.0\n",
	"cmd/rowlock/main.go":    "package main\n\nimport _ \"fmt\"\n\nfunc main() {}\n",
}

func TestFiguresOfASmallTree(t *testing.T) {
	got := make(map[string]int)
	for _, f := range ofSmall(t, nil) {
		got[f.Name] = f.Value
	}
	want := map[string]int{
		"root.lines":       9 + 9 + 10 + 3, // root.go, used.go, cycle.go, alone.go
		"root.packages":    2,
		"product.lines":    31 + 6 + 2 + 5, // and mysql.go, a.sql, main.go
		"sql.lines":        2,
		"large.structs":    1, // Large
		"large.parameters": 1, // six
		"large.interfaces": 1, // many
		"root.cycle":       1,
		"largest.cycle":    2, // used.go, cycle.go
		"public.packages":  3, // the root, locktest, mysql
		"adapter.largest":  3, // one.go
		"neighbours.lines": 3, // frame.go
	}
	if !maps.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

func TestAFigureNamesWhatHasBecomeTooLarge(t *testing.T) {
	for _, c := range []struct{ figure, text, says string }{
		{"large.structs", "type Huge struct{ a, b, c, d, e, f, g, h, i, j, k, l, m, n int }", "14 .: Huge"},
		{"large.parameters", "func Longer(a, b, c, d, e, f, g int) {}", "7 .: Longer"},
		{
			"large.interfaces",
			"type Wide interface{ A(); B(); C(); D(); E(); F(); G(); H(); I(); J(); K(); L(); M(); N() }",
			"14 .: Wide",
		},
	} {
		for _, f := range ofSmall(t, map[string]string{"more.go": "package rowlock\n\n" + c.text + "\n"}) {
			if f.Name == c.figure && (f.Value != 2 || !strings.Contains(f.Why[0], c.says)) {
				t.Errorf("%s is %d for %q, want 2 for %q", f.Name, f.Value, f.Why, c.says)
			}
		}
	}
}

func ofSmall(t *testing.T, more map[string]string) []Figure {
	t.Helper()
	t.Setenv("GOWORK", "off")
	dir := t.TempDir()
	files := maps.Clone(small)
	maps.Copy(files, more)
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := OfSource(dir)
	if err != nil {
		t.Fatal(err)
	}
	return all
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
