package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// A statement that grants, keeps or gives away has at least these guards in every dialect.
func TestEveryDialectHasItsGuards(t *testing.T) {
	for _, db := range databases {
		all, err := mutantsOf(root, db)
		if err != nil {
			t.Fatal(err)
		}
		names := make(map[string]bool)
		for i := range all {
			if m := &all[i]; names[m.name()] || m.now == m.was {
				t.Errorf("%s stands twice, or changes nothing", m.name())
			}
			names[all[i].name()] = true
		}
		for _, want := range []string{
			"statements.sql:raise: placement = @placement", "statements.sql:confirm: expires_at > now",
			"move.sql:depart: token = ?", "limit.sql:limit-resize: generation + 1",
			"shared.sql:readers-make: expires_at > now", "token.sql:token-raise: @table.@token <= ?",
		} {
			if !has(names, want) {
				t.Errorf("%s has no guard %s", db, want)
			}
		}
	}
}

// A statement that a server does not read has no mutants there: no test could kill them.
func TestAServerHasMutantsOfItsOwnStatementsOnly(t *testing.T) {
	for db, statement := range map[string]string{"mariadb": "era-session-mariadb", "mysql": "era-session"} {
		for _, m := range must(mutantsOf(root, db)) {
			if strings.HasPrefix(m.statement, "era-session") && m.statement != statement {
				t.Errorf("%s is not read", m.name())
			}
		}
	}
}

// has finds a guard whatever its parameter is called.
func has(names map[string]bool, want string) bool {
	for name := range names {
		if before, _, ok := strings.Cut(want, "?"); strings.Contains(name, before) && (ok || strings.HasSuffix(name, want)) {
			return true
		}
	}
	return false
}

func TestGuardsInGoAreFound(t *testing.T) {
	const text = "package p\n\nfunc f() string { return `SELECT %s FOR UPDATE SKIP LOCKED` + v }\n\n" +
		"func g() string { return \"SET \" + s + \" AND \" + v + \" = ?\" }\n"
	got, err := mutantsInSource("mysql", "p.go", text)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"SKIP LOCKED":            "`SELECT %s FOR UPDATE `",
		"FOR UPDATE SKIP LOCKED": "`SELECT %s `",
		"version = ?":            `" AND " + v + " >= ?"`,
	}
	for _, m := range got {
		if now := want[m.guard]; now == "" || !strings.Contains(m.now, now) {
			t.Errorf("%s %s: %s", m.statement, m.guard, m.now)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d mutants, want %d", len(got), len(want))
	}
}

// The hook fits sqlstore as it is, and an overlay names files that there are.
func TestTheHookFitsTheSources(t *testing.T) {
	into, whole := t.TempDir(), must(filepath.Abs(root))
	settings, err := overlay(whole, into, &mutant{file: "forupdate/pick.go", now: "package forupdate"})
	if err != nil {
		t.Fatal(err)
	}
	text := string(must(os.ReadFile(settings)))
	for _, file := range []string{sections, hookFile, "forupdate/pick.go"} {
		if !strings.Contains(text, filepath.ToSlash(filepath.Join(whole, file))) {
			t.Errorf("the overlay leaves %s out: %s", file, text)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Tests that are named here and nowhere else would silently run nothing.
func TestEveryStepNamesAPackage(t *testing.T) {
	for _, db := range databases {
		all, err := mutantsOf(root, db)
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			for _, s := range all[i].tests() {
				found, err := filepath.Glob(filepath.Join(root, s.pkg, "*_test.go"))
				if len(found) == 0 || err != nil || s.run == "" {
					t.Fatalf("%s: %+v has no tests", all[i].name(), s)
				}
			}
		}
	}
}

func TestASurvivorNeedsAReason(t *testing.T) {
	list, err := parse("# why\n\nsqlite mysql | a.sql:b: c = ? | another guard asks the same\n")
	if err != nil {
		t.Fatal(err)
	}
	m := mutant{db: "mysql", file: "dialect/mysql/a.sql", statement: "b", guard: "c = ?"}
	if why := explains(list, &m); why != "another guard asks the same" {
		t.Errorf("it is explained by %q", why)
	}
	if old := stale(list, "mysql", []mutant{m}); len(old) != 0 {
		t.Errorf("%q are stale", old)
	}
	if old := stale(list, "sqlite", []mutant{m}); len(old) != 0 {
		t.Errorf("%q are stale", old)
	}
	m.guard = "d"
	if why := explains(list, &m); why != "" {
		t.Errorf("another guard is explained by %q", why)
	}
	if old := stale(list, "mysql", []mutant{m}); len(old) != 1 {
		t.Errorf("%q are stale, want one", old)
	}
	if _, err := parse("sqlite | a"); err == nil {
		t.Error("a line without a reason is read")
	}
}

func TestExplanationsAreOfMutants(t *testing.T) {
	list, err := parse(explanations)
	if err != nil {
		t.Fatal(err)
	}
	for _, db := range databases {
		all, err := mutantsOf(root, db)
		if err != nil {
			t.Fatal(err)
		}
		if old := stale(list, db, all); len(old) > 0 {
			t.Errorf("explained.txt has what is no mutant: %q", old)
		}
	}
}

func TestTheFirstFailureIsNamedByItsSubtest(t *testing.T) {
	for said, want := range map[string]string{
		"ok\n--- FAIL: TestA (0s)\n    --- PASS: TestA/x (0s)\n    --- FAIL: TestA/y (0s)\nmore\n--- FAIL: TestB (0s)\n": "TestA/y",
		"--- FAIL: TestA (0s)":           "TestA",
		"    --- FAIL: TestA/y/z (0s)\n": "TestA/y/z",
		"panic: test timed out\n\nstack": "panic: test timed out",
		"PASS\n":                         "",
	} {
		if got := firstFailure(strings.NewReader(said)); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
}
