package main

import (
	"database/sql"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/rowlockdb/rowlock/doctor"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

func (b *bed) report(code int, args ...string) (r doctor.Report) {
	b.Helper()
	out := b.wants(code, "", append([]string{"doctor", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return r
}

// The exit code is 0, 8 or 9 by the worst finding.
func TestDoctorExitsByTheWorstFinding(t *testing.T) {
	each(t, func(b *bed) {
		if r := b.report(0); r.Worst > doctor.Info || len(r.Findings) < 12 {
			b.Errorf("a healthy server: %+v", r)
		}
		b.breakIndex()
		if r := b.report(8); r.Worst != doctor.Warning || r.Findings[0].ID != "tables" {
			b.Errorf("without an index: %+v", r)
		}
		if r := b.report(0, "--skip", "tables"); r.Worst > doctor.Info {
			b.Errorf("without that check: %+v", r)
		}
		b.Exec(b.T, `UPDATE {rowlock_meta} SET value = '1' WHERE name = 'schema_version'`)
		r := b.report(9, "--only", "schema,tables")
		if len(r.Findings) != 2 || r.Findings[0].ID != "schema" || r.Worst != doctor.Critical {
			b.Errorf("with tables of version 1: %+v", r)
		}
		b.Exec(b.T, `UPDATE {rowlock_meta} SET value = '3' WHERE name = 'schema_version'`)
		if r := b.report(9, "--prefix", "missing_"); r.Findings[0].ID != "schema" {
			b.Errorf("without tables: %+v", r)
		}
	})
}

// breakIndex puts an index on other columns.
func (b *bed) breakIndex() {
	b.Helper()
	query := map[string]string{
		"pgx":    `SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = to_regclass('{rowlock_once}') AND NOT indisunique`,
		"sqlite": `SELECT '"' || name || '"' FROM pragma_index_list(trim('{rowlock_once}', '"')) WHERE NOT "unique"`,
		"mysql": "SELECT INDEX_NAME FROM information_schema.STATISTICS WHERE TABLE_NAME = " +
			"REPLACE('{rowlock_once}', '`', '') AND NON_UNIQUE = 1 LIMIT 1",
	}[b.Driver]
	var name string
	if err := b.DB.QueryRowContext(b.Context(), b.SQL(query)).Scan(&name); err != nil {
		b.Fatal(err)
	}
	drop := `DROP INDEX ` + name
	if b.Driver == "mysql" {
		drop += ` ON {rowlock_once}`
	}
	b.Exec(b.T, drop)
}

// WAL stays with the file. What reads must not change it, and the doctor must tell of it.
func TestWhatReadsLeavesAFileInItsJournalMode(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	path := strings.TrimPrefix(b.dsn, "sqlite:")
	mode := func(set string) (mode string) {
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.QueryRowContext(t.Context(), "PRAGMA journal_mode"+set).Scan(&mode); err != nil {
			t.Fatal(err)
		}
		return mode
	}
	b.DB.Close() // no file leaves WAL while it is open
	mode(" = DELETE")
	if out := b.wants(8, "", "doctor"); !strings.Contains(out, "journal_mode is delete") {
		t.Errorf("the doctor says %s", out)
	}
	b.wants(0, "no such keys", "ls")
	if is := mode(""); is != "delete" {
		t.Errorf("the file is left in the mode %s", is)
	}
}

// The names in JSON are what monitors read: they stay.
func TestDoctorsJSONHasStableNames(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	var r map[string]any
	if err := json.Unmarshal([]byte(b.wants(0, "", "doctor", "-o", "json")), &r); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"server", "dialect", "at", "worst", "findings"} {
		if _, ok := r[name]; !ok {
			t.Errorf("no %s in %v", name, r)
		}
	}
	for _, f := range r["findings"].([]any) {
		f := f.(map[string]any)
		for _, name := range []string{"id", "severity", "summary", "checked", "evidence", "cure"} {
			if f[name] == nil {
				t.Errorf("no %s in %v", name, f)
			}
		}
	}
	if r["worst"] != "ok" {
		t.Errorf("the worst is %v", r["worst"])
	}
}

func TestDoctorPrintsTheWorstFirst(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	if out := b.wants(0, "", "doctor"); strings.Count(out, "\n") != 1 || !strings.Contains(out, "0 critical") {
		t.Errorf("of a healthy file it prints %q", out)
	}
	if out := b.wants(0, "", "doctor", "--all"); !strings.Contains(out, "durability: ") {
		t.Errorf("with --all it prints %q", out)
	}
	b.breakIndex()
	b.Exec(t, `UPDATE {rowlock_meta} SET value = '0' WHERE name = 'schema_version'`)
	out := b.wants(9, "", "doctor")
	critical, warning := strings.Index(out, "\nCRITICAL\n"), strings.Index(out, "\nWARNING\n")
	if critical < 0 || warning < critical || strings.Contains(out, "\x1b") ||
		!strings.Contains(out, "cure: rowlock migrate up") || !strings.Contains(out, "schema_version = 0") {
		t.Errorf("it prints %q", out)
	}
	for _, columns := range []int{100, 40, 12} {
		code, raw := b.screen(columns, 200, b.command("doctor")).ends()
		if code != 9 || !strings.Contains(raw, "\x1b[") {
			t.Errorf("on a terminal of %d columns it exits with %d: %q", columns, code, raw)
		}
		for line := range strings.Lines(raw) {
			if w := ansi.StringWidth(strings.TrimRight(line, "\r\n")); w > columns {
				t.Errorf("%d columns where there are %d: %q", w, columns, line)
			}
		}
	}
	b.Exec(t, `UPDATE {rowlock_meta} SET value = '3' WHERE name = 'schema_version'`)
}

func TestDoctorNamesWhatItCannotDo(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	b.wants(2, "there is no check", "doctor", "--only", "durabilty")
	b.wants(2, "there is no check", "doctor", "--skip", "x")
	b.wants(2, "negative", "doctor", "--limit", "-1s")
	b.wants(3, "cannot be reached", "doctor", "--dsn", "postgres://127.0.0.1:1/x")
	b.wants(2, "is missing", "doctor", "--dsn", "sqlite:"+t.TempDir()+"/no.db")
}

// A database that is gone before the end is told, and ends the command in time.
func TestDoctorWithoutItsDatabaseEnds(t *testing.T) {
	for _, k := range testdb.Servers {
		t.Run(k.Name, func(t *testing.T) {
			b := newBed(t, k.Open(t))
			g, behind := b.gate()
			cmd := behind.command("doctor", "--skip", "pooler", "--limit", "5s")
			time.AfterFunc(300*time.Millisecond, func() { g.set(true) })
			out, said, code := finish(t, cmd)
			if code != 3 || !strings.HasPrefix(said, "rowlock: ") {
				t.Errorf("exits with %d: %s%s", code, out, said)
			}
		})
	}
}
