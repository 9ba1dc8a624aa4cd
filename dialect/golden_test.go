package dialect_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

var update = flag.Bool("update", false, "write the golden listings instead of comparing with them")

// rooms are the dialects, what each has loaded, and how it quotes names.
var rooms = []struct {
	name     string
	sections sqlstore.Sections
	quote    string
	times    *strings.Replacer // for what all dialects share
}{
	{"mysql", sqlstore.Of(mysql.New()).Sections, "`", strings.NewReplacer(
		"@now", "UTC_TIMESTAMP(6)", "@never", "'9999-01-01'")},
	{"postgres", sqlstore.Of(postgres.New()).Sections, `"`, strings.NewReplacer(
		"@now", "clock_timestamp()", "@never", "'9999-01-01 00:00:00+00'")},
	{"sqlite", sqlstore.Of(sqlite.New()).Sections, `"`, strings.NewReplacer(
		"@now", "CAST(unixepoch('subsec') * 1000 AS INTEGER)", "@never", "253370764800000")},
}

// The listings have every statement as the server gets it, so that a review sees what a change does
// to it: -update writes them.
func TestEveryStatementIsAsItsGoldenListingHasIt(t *testing.T) {
	for _, r := range rooms {
		var b strings.Builder
		b.WriteString("-- Every statement as the server gets it.\n" +
			"-- Written by: go test ./dialect -run Golden -update\n")
		files, err := filepath.Glob(filepath.Join(r.name, "*.sql"))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		listed := 0
		for _, file := range files {
			listed += list(t, &b, "dialect/"+filepath.ToSlash(file), file, r.sections)
		}
		if listed != len(r.sections) {
			t.Errorf("%s: %d statements are loaded, and the files have %d: does a name stand twice?",
				r.name, len(r.sections), listed)
		}
		for _, name := range []string{"all", r.name} {
			migrates := filepath.Join("..", "schema", "statements", name+".sql")
			text, err := os.ReadFile(migrates)
			if err != nil {
				t.Fatal(err)
			}
			filled := r.times.Replace(string(text))
			sections := make(sqlstore.Sections)
			for _, c := range sqlstore.CutSections(filled) {
				sections[c.Name] = sqlstore.LabelSection(c.Name, sqlstore.Names{}.Fill(c.SQL, r.quote))
			}
			list(t, &b, "schema/statements/"+name+".sql", migrates, sections)
		}
		golden(t, filepath.Join("testdata", r.name+".golden.sql"), b.String())
	}
}

// list writes the statements of a file, in the file's order, and returns how many there are.
func list(t *testing.T, b *strings.Builder, title, file string, loaded sqlstore.Sections) int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cut := sqlstore.CutSections(string(text))
	if marks := strings.Count("\n"+string(text), "\n-- name:"); marks != len(cut) {
		t.Errorf("%s has %d names and %d statements: a name has a-z and - only", title, marks, len(cut))
	}
	for _, c := range cut {
		sql := loaded.Text(c.Name)
		switch labeled := strings.Contains(sql, " /* rowlock "+c.Name+" */"); {
		// no statement, the name of a table, a condition
		case sql == "", c.Name == "hold-table", strings.HasPrefix(c.Name, "late-"),
			strings.HasPrefix(c.Name, "doctor-bad-"):
		case !labeled:
			t.Errorf("%s %s: the statement does not name its section: %s", title, c.Name, sql)
		}
		for _, left := range []string{"@placement", "@last_token", "--"} {
			if strings.Contains(sql, left) {
				t.Errorf("%s %s: %s is left in %s", title, c.Name, left, sql)
			}
		}
		fmt.Fprintf(b, "\n-- %s: %s\n", title, c.Name)
		if sql != "" {
			fmt.Fprintln(b, sql)
		}
	}
	return len(cut)
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, have := strings.Split(string(text), "\n"), strings.Split(got, "\n")
	for i := 0; i < max(len(want), len(have)); i++ {
		if i >= len(want) || i >= len(have) || want[i] != have[i] {
			t.Errorf("%s differs from line %d on: go test ./dialect -run Golden -update writes it anew\n"+
				"listing %q\nloaded  %q", file, i+1, lineOf(want, i), lineOf(have, i))
			return
		}
	}
}

func lineOf(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// The largest token stands in lease.MaxToken alone, and in the .sql files as @last_token.
func TestTheLargestTokenIsWrittenOnce(t *testing.T) {
	for _, r := range rooms {
		files, err := filepath.Glob(filepath.Join(r.name, "*.sql"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "92233720368537") {
				t.Errorf("%s has the largest token as a number: write @last_token", file)
			}
		}
		if sql := r.sections.Text("acquire-update"); !strings.Contains(sql, "token BETWEEN 0 AND 9223372036853727231 - 1") {
			t.Errorf("%s: @last_token is not filled in: %s", r.name, sql)
		}
	}
}
