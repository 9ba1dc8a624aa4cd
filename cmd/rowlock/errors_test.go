package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/schema"
)

func TestWithoutTablesEveryCommandNamesTheCure(t *testing.T) {
	each(t, func(b *bed) {
		for _, args := range [][]string{{"ls"}, {"show", "k"}, {"waiters"}, {"watch"}, {"migrate", "status"}} {
			b.wants(4, "run `rowlock migrate up --prefix missing_`", append(args, "--prefix", "missing_")...)
		}
		b.wants(4, `New(dialect.Prefix("missing_"))`, "ls", "--prefix", "missing_")
		b.wants(125, "run `rowlock migrate up --prefix missing_`", "run", "k", "--prefix", "missing_", "--", "true")
	})
}

func TestTablesOfAnotherVersionAreRefused(t *testing.T) {
	each(t, func(b *bed) {
		b.Exec(b.T, `UPDATE {rowlock_meta} SET value = '99' WHERE name IN ('schema_version', 'compatible_from')`)
		b.wants(4, "99", "ls")
		b.wants(125, "99", "run", "k", "--", "true")
		b.Exec(b.T, `UPDATE {rowlock_meta} SET value = '3' WHERE name IN ('schema_version', 'compatible_from')`)
	})
}

func TestMissingPrivilegesAreNamed(t *testing.T) {
	e := testdb.Kinds[1].Open(t)
	b := newBed(t, e)
	user := e.Dialect.Names().Prefix + "user"
	e.Exec(t, `CREATE ROLE `+user+` LOGIN`)
	t.Cleanup(func() { e.Exec(t, `DROP ROLE `+user) })
	u, err := url.Parse(b.dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(user)
	b.wants(5, "GRANT", "ls", "--dsn", u.String())
	b.wants(125, "GRANT", "run", "k", "--dsn", u.String(), "--", "true")
}

func TestWrongUsageIsToldInOneLine(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{2, "unknown command", []string{"frobnicate"}},
		{2, "unknown command", []string{"help", "frobnicate"}},
		{2, "unknown command", []string{"help", "migrate", "frobnicate"}},
		{2, "unknown flag", []string{"ls", "--frobnicate"}},
		{2, "write table or json", []string{"ls", "-o", "yaml"}},
		{2, `write a backslash as \\`, []string{"show", `a\b`}},
		{2, "postgres://", []string{"ls", "--dsn", "oracle://x"}},
		{2, "give --dsn", []string{"ls", "--dsn", ""}},
		{2, "rowlock migrate up --create", []string{"ls", "--dsn", "sqlite:" + filepath.Join(t.TempDir(), "no.db")}},
		{2, "SQLite has no schemas", []string{"ls", "--schema", "x"}},
		{2, "--yes", []string{"migrate", "down"}},
		{2, "--yes", []string{"uninstall"}},
		{2, "no set of tables \"\"", []string{"migrate", "up", "--set", ""}},
		{2, "ROWLOCK_KEY is not set", []string{"fence"}},
		{2, "top needs a terminal", []string{"top"}},
		{3, "cannot be reached", []string{"ls", "--dsn", "postgres://127.0.0.1:1/x"}},
		{3, "cannot be reached", []string{"ls", "--dsn", "mysql://127.0.0.1:1/x"}},
		{1, "it is free", []string{"show", "never"}},
		{125, "rowlock run KEY -- COMMAND", []string{"run", "k", "true"}},
		{125, "at most a third", []string{"run", "k", "--grace", "20s", "--", "true"}},
		// A script that is late waits no longer, and not for ever.
		{125, "must be 0 or more", []string{"run", "k", "--wait", "-3s", "--", "true"}},
		{125, "must be 0 or more", []string{"run", "k", "--max-hold", "-1m", "--", "true"}},
		{125, "must be 0 or more", []string{"run", "k", "--min-hold", "-1m", "--", "true"}},
		{125, "at most 24h", []string{"run", "k", "--min-hold", "48h", "--", "true"}},
		{127, "not found", []string{"run", "k", "--", "no-such-program"}},
		{126, "permission denied", []string{"run", "k", "--", "/etc/passwd"}},
	} {
		b.wants(c.code, c.says, c.args...)
	}
}

func TestCodesOfTheCommandPass(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	for _, code := range []string{"0", "1", "7", "255"} {
		if _, said, got := b.does("run", "k", "--", "sh", "-c", "exit "+code); said != "" ||
			json.Number(code) != json.Number(strings.TrimSpace(itoa(got))) {
			t.Errorf("a command that exits with %s ends run with %d: %s", code, got, said)
		}
	}
}

func TestAHeldKeyIsSkippedOrRefused(t *testing.T) {
	each(t, func(b *bed) {
		b.wants(0, "", "run", "k", "--keep-dsn", "--", "sh", "-c",
			binary+` run k --wait 0 -- true 2>/dev/null; test $? = 120 || exit 1
			`+binary+` run k --wait 1s -- true 2>/dev/null; test $? = 120 || exit 2
			`+binary+` run k --skip-if-held -- false 2>/dev/null || exit 3`)
	})
}

func TestTablesAreMadeAndRemoved(t *testing.T) {
	each(t, func(b *bed) {
		b.Cleanup(func() { _ = schema.Uninstall(context.Background(), b.DB, b.Dialect) })
		for _, command := range []string{"migrate down --yes", "uninstall --yes"} {
			out, said, code := b.does(strings.Fields(command)...) // it may tell of sessions beside it
			if code != 0 || !strings.Contains(out, "tables removed") {
				b.Errorf("rowlock %s: %d %s%s", command, code, out, said)
			}
		}
		b.wants(4, "migrate up", "migrate", "status")
		b.wants(0, "", "migrate", "up")
		if out := b.wants(0, "", "migrate", "status"); !strings.Contains(out, "up to date") {
			b.Errorf("status says %q", out)
		}
		if out := b.wants(0, "", "migrate", "sql"); !strings.Contains(out, b.Dialect.Names().Prefix+"rowlock") {
			b.Errorf("sql prints %q", out)
		}
		if out := b.wants(0, "", "migrate", "sql", "--set", "once"); !strings.Contains(out, "rowlock_once") || strings.Contains(out, "rowlock_wait") {
			b.Errorf("sql of the set once prints %q", out)
		}
		b.wants(2, "no set of tables", "migrate", "up", "--set", "onec")
		b.does("uninstall", "--yes")
		b.wants(0, "", "migrate", "up", "--set", "core,once")
		for _, command := range []string{"ls", "show k", "history", "history k", "waiters", "doctor", "migrate status"} {
			if _, said, code := b.does(strings.Fields(command)...); code > 1 || strings.Contains(said, "tables missing") {
				b.Errorf("on the sets core and once rowlock %s exits with %d: %s", command, code, said)
			}
		}
	})
}

// Programs in other languages begin no era: docs/protocol.md has this command begin one for them.
func TestMigrateStatusBeginsAnEra(t *testing.T) {
	each(t, func(b *bed) {
		eras := func() (n int) {
			b.Helper()
			query := b.SQL(`SELECT COUNT(*) FROM {rowlock_meta} WHERE start IS NOT NULL AND name <> 'eras'`)
			if err := b.DB.QueryRowContext(b.Context(), query).Scan(&n); err != nil {
				b.Fatal(err)
			}
			return n
		}
		b.Exec(b.T, `DELETE FROM {rowlock_meta} WHERE start IS NOT NULL AND name <> 'eras'`)
		b.does("ls")
		if n := eras(); n != 0 {
			b.Errorf("what reads has begun %d eras", n)
		}
		b.wants(0, "", "migrate", "status")
		if n := eras(); n != 1 {
			b.Errorf("rowlock migrate status has begun %d eras", n)
		}
	})
}

// A benchmark leaves no table behind, also when it is interrupted.
func TestABenchmarkCleansUp(t *testing.T) {
	each(t, func(b *bed) {
		_, said, code := b.does("bench", "--for", "100ms", "-o", "json")
		if code != 0 {
			b.Fatalf("bench exits with %d: %s", code, said)
		}
		cmd := b.command("bench", "--for", "10s")
		said = interruptWhenItSays(b.T, cmd, "tables of its own")
		if left := benchTables(b); left != 0 {
			b.Errorf("%d tables are left: %s", left, said)
		}
	})
}

func benchTables(b *bed) (n int) {
	b.Helper()
	query := `SELECT count(*) FROM information_schema.tables WHERE table_name LIKE 'rowlock\_bench\_%'`
	if b.Driver == "sqlite" {
		query = `SELECT count(*) FROM sqlite_master WHERE name LIKE 'rowlock\_bench\_%' ESCAPE '\'`
	}
	if err := b.DB.QueryRowContext(b.Context(), query).Scan(&n); err != nil {
		b.Fatal(err)
	}
	return n
}

func TestAPasswordForAnotherHostIsWarnedOf(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	for _, dsn := range []string{"postgres://app:hunter2@db.invalid/x", "mysql://app:hunter2@db.invalid/x"} {
		out, said, code := b.does("ls", "--dsn", dsn, "--require-tls")
		if code != 2 || !strings.Contains(said, "--require-tls") || strings.Contains(said, "hunter2") {
			t.Errorf("ls --require-tls exits with %d: %s%s", code, out, said)
		}
		_, said, code = b.does("run", "k", "--dsn", dsn, "--require-tls", "--", "true")
		if code != 125 || !strings.Contains(said, "--require-tls") {
			t.Errorf("run --require-tls exits with %d: %s", code, said)
		}
	}
	b.wants(0, "no such keys", "ls", "--require-tls") // a file is no other host
	_, said, code := b.does("postgres://app:hunter2@db/x")
	if code != 2 || strings.Contains(said, "hunter2") {
		t.Errorf("a DSN instead of a command: %d, %s", code, said)
	}
	_, said, code = b.does("move", "k", "--etcd", "http://10.0.0.1:2379", "--require-tls")
	if code != 2 || !strings.Contains(said, "--require-tls: --etcd") {
		t.Errorf("move --require-tls exits with %d: %s", code, said)
	}
}

func TestFilesOfTheProgramAreTheirOwnersAlone(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	report, file := filepath.Join(t.TempDir(), "report"), filepath.Join(t.TempDir(), "new.db")
	b.wants(0, "", "run", "k", "--report", report, "--", "true")
	b.does("migrate", "up", "--create", "--dsn", "sqlite:"+file)
	for _, name := range []string{report, file} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the rights %v (%v), want 0600", name, info.Mode(), err)
		}
	}
}

// A report of the run before would tell that a command has ended that never began.
func TestARunThatIsRefusedWritesItsReport(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	report := filepath.Join(t.TempDir(), "report")
	for _, c := range []struct {
		code    int
		outcome string
		args    []string
	}{
		{0, "exited", []string{"--", "true"}},
		{127, "failed", []string{"--", "no such program"}},
		{125, "failed", []string{"--grace", "1h", "--", "true"}},
	} {
		_, said, code := b.does(append([]string{"run", "k", "--report", report}, c.args...)...)
		text, err := os.ReadFile(report)
		want := fmt.Sprintf(`"outcome":%q`, c.outcome)
		if code != c.code || err != nil || !strings.Contains(string(text), want) ||
			!strings.Contains(string(text), fmt.Sprintf(`"exit_code":%d}`, c.code)) {
			t.Errorf("%v exits with %d (%s) and reports %s (%v)", c.args, code, said, text, err)
		}
	}
}

func TestRunRefusesATTLOfZero(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	for _, ttl := range []string{"0s", "-1s"} {
		if _, said, code := b.does("run", "k", "--ttl", ttl, "--", "true"); code != 125 || !strings.Contains(said, "--ttl "+ttl+" must") {
			t.Errorf("--ttl %s: exits with %d: %s", ttl, code, said)
		}
	}
}

// A script that goes on with an empty fence would write without one.
func TestWhatCannotBePrintedIsAnError(t *testing.T) {
	b := newBed(t, testdb.Kinds[0].Open(t))
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here: ", err)
	}
	defer full.Close()
	b.holds("k")
	fence := []string{"fence", "--key", "k", "--owner", strings.Repeat("0f", 16), "--token", "5", "--dialect", "mysql"}
	for _, args := range [][]string{
		fence,
		{"show", "k"},
		{"ls"},
		{"ls", "-o", "json"},
		{"migrate", "sql"},
		{"doctor"},
		{"version"},
		{"watch"},
		{"watch", "-o", "json"},
		{"console", "--listen", "127.0.0.1:0"},
		{"help"},
		{},
		{"run", "--help"},
		{"help", "ls"},
		{"completion", "bash"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := b.command(args...)
		ended := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
		defer ended()
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = full, &said
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != 7 || !strings.HasPrefix(said.String(), "rowlock: print: ") {
			t.Errorf("%v exits with %d: %s", args, code, &said)
		}
	}
}
