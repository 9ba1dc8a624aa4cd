package main

import (
	"os"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/testdb"
)

const root = "../../.."

func TestThePageHasTheTableOfTheData(t *testing.T) {
	kept := committed(t)
	text, err := os.ReadFile(place(root, page))
	if err != nil {
		t.Fatal(err)
	}
	made, err := kept.in(text)
	if err != nil {
		t.Fatal(err)
	}
	if string(made) != string(text) {
		t.Errorf("%s and %s differ: run make matrix, which writes both", page, data)
	}
}

// A reader cannot count on a row that was not run, or on a suite that ran no test there. One suite
// alone goes through PgBouncer.
func TestEveryVersionHasPassedEverySuiteOrIsNamedAsMissing(t *testing.T) {
	rows := make(map[string]row)
	for _, r := range committed(t).Rows {
		rows[r.Name] = r
	}
	for _, name := range names() {
		r := rows[name]
		if r.Missing != "" {
			continue
		}
		if r.Version == "" || len(r.Failed) > 0 {
			t.Errorf("%s: version %q, failed %q", name, r.Version, r.Failed)
		}
		for _, s := range suites {
			if r.Passed[s.what] == 0 && !(strings.HasPrefix(name, "PgBouncer") && s.what != "conformance") {
				t.Errorf("%s has passed no test of %s", name, s.pkg)
			}
		}
	}
}

// Tests of every kind of database are counted, and those of a kind that no row has would be lost.
func TestEveryKindOfDatabaseHasARow(t *testing.T) {
	for _, k := range append(testdb.Kinds, testdb.PgBouncer) {
		found := false
		for _, s := range starts {
			found = found || s.has(k.Name)
		}
		if !found {
			t.Errorf("no row is of %s", k.Name)
		}
	}
}

func TestARunIsCountedByKind(t *testing.T) {
	s := start{rows: []kind{{"A 1", "postgres"}, {"B", "pgbouncer"}}}
	said := "with-servers: postgres 13.23 ready on port 1, 1.3 s\n"
	for range suites {
		said += begins + "some/package\n" +
			"--- PASS: TestOne/postgres (0.00s)\n    --- PASS: TestOne/postgres/part (0.00s)\n" +
			"    --- FAIL: TestTwo/pgbouncer (0.00s)\n--- PASS: TestOfNoDatabase (0.00s)\n" + ended + "\n"
	}
	rows, err := s.read(said)
	if err != nil {
		t.Fatal(err)
	}
	a, b := rows[0], rows[1]
	if a.Version != "13.23" || a.Passed["fences"] != 2 {
		t.Errorf("read %+v", a)
	}
	if len(b.Failed) != len(suites) || b.Failed[0] != suites[0].pkg+" TestTwo/pgbouncer" {
		t.Errorf("the failed tests are %q", b.Failed)
	}
	// The suite failed, and no test of this kind says why: none may count as passed on it.
	if len(a.Failed) != len(suites) || a.Failed[0] != suites[0].pkg {
		t.Errorf("a suite that failed counts as passed: %q", a.Failed)
	}
}

func TestARunThatBrokeOffIsNoRow(t *testing.T) {
	s := start{rows: []kind{{"A 1", "postgres"}}}
	if _, err := s.read(begins + suites[0].pkg + "\n"); err == nil {
		t.Error("one suite of many has made a row")
	}
}

func committed(t *testing.T) *table {
	t.Helper()
	kept, err := read(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(kept.Rows) == 0 {
		t.Fatalf("%s has no rows", data)
	}
	return kept
}
