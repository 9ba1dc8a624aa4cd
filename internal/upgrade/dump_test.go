package upgrade_test

import (
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/schema"
)

var write = flag.Bool("dump", false, "write testdata/schema for the present schema version; an existing file stays")

const versions = "../../testdata/schema"

// file is where the tables of a version on a kind of database are kept.
func file(version int, kind string) string {
	extension := ".sql"
	if kind == "sqlite" {
		extension = ".db"
	}
	return filepath.Join(versions, fmt.Sprintf("v%d", version), kind+extension)
}

// fresh is a database of its own, without tables.
func fresh(t *testing.T, k testdb.Kind) *testdb.Env {
	t.Helper()
	return &testdb.Env{Kind: k, Dialect: k.New(), Source: k.Fresh(t)}
}

// dump writes e's tables to a file that does not exist yet: the tables as their migrations make
// them, and then each row.
func dump(t *testing.T, e *testdb.Env, name string) {
	t.Helper()
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Logf("%s is there already and stays as it is: remove it first if its version was never released (%v)", name, err)
		return
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if e.Name == "sqlite" {
		e.Exec(t, "VACUUM INTO '"+name+"'")
		return
	}
	up, _, err := schema.SQL(e.Dialect)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "-- The tables of schema version %d on %s, and rows that the code of that version has written.\n"+
		"-- Written by: go test ./internal/upgrade -run TestDump -dump\n\n%s\n", schema.Version, e.Name, up)
	updates(t, e, &b)
	for _, name := range []string{
		"rowlock", "rowlock_queue", "rowlock_hold", "rowlock_once", "rowlock_member", "rowlock_latch",
	} {
		inserts(t, e, &b, name, "{key}")
	}
	inserts(t, e, &b, "rowlock_party", "party")
	inserts(t, e, &b, "rowlock_limit", "name")
	inserts(t, e, &b, "rowlock_forced", "id")
	inserts(t, e, &b, "rowlock_trace", "id")
	b.WriteString("INSERT INTO rowlock_meta (name, start, since) SELECT 'era/of the writer', 0, since FROM rowlock_meta WHERE name = 'eras';\n")
	if e.Name == "postgres" {
		b.WriteString("SELECT setval(pg_get_serial_sequence('rowlock_queue', 'ticket'), (SELECT max(ticket) FROM rowlock_queue));\n")
	}
	if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// updates writes what differs from the rows that the migrations make.
func updates(t *testing.T, e *testdb.Env, b *strings.Builder) {
	t.Helper()
	rows(t, e, `SELECT name, value FROM {rowlock_meta} WHERE name = 'instance' ORDER BY name`,
		func(scan func(...any) error) error {
			var name, value string
			err := scan(&name, &value)
			fmt.Fprintf(b, "UPDATE rowlock_meta SET value = '%s' WHERE name = '%s';\n", value, name)
			return err
		})
	rows(t, e, `SELECT bucket, floor FROM {rowlock_floor} WHERE floor > 0 ORDER BY bucket`, func(scan func(...any) error) error {
		var bucket, floor int64
		err := scan(&bucket, &floor)
		fmt.Fprintf(b, "UPDATE rowlock_floor SET floor = %d WHERE bucket = %d;\n", floor, bucket)
		return err
	})
}

// inserts writes a statement for each row of a table.
func inserts(t *testing.T, e *testdb.Env, b *strings.Builder, name, order string) {
	t.Helper()
	found, err := e.DB.QueryContext(t.Context(), e.SQL(`SELECT * FROM {`+name+`} ORDER BY `+order))
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	columns, err := found.ColumnTypes()
	if err != nil {
		t.Fatal(err)
	}
	names, quote, override := make([]string, len(columns)), `"`, ""
	switch {
	case e.Driver == "mysql":
		quote = "`"
	case name == "rowlock_queue":
		override = " OVERRIDING SYSTEM VALUE"
	}
	for i, c := range columns {
		names[i] = quote + c.Name() + quote
	}
	for found.Next() {
		values := make([]any, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := found.Scan(into...); err != nil {
			t.Fatal(err)
		}
		literals := make([]string, len(columns))
		for i, c := range columns {
			literals[i] = literal(e, c, values[i])
		}
		fmt.Fprintf(b, "INSERT INTO %s (%s)%s VALUES (%s);\n", name, strings.Join(names, ", "), override, strings.Join(literals, ", "))
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
}

func literal(e *testdb.Env, c *sql.ColumnType, v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case time.Time:
		return "'" + v.UTC().Format("2006-01-02 15:04:05.000000") + "+00'"
	case string:
		return "'" + strings.ReplaceAll(v, "'", "''") + "'"
	case []byte:
		switch {
		case c.DatabaseTypeName() == "DATETIME":
			return "'" + string(v) + "'"
		case e.Driver == "mysql":
			return fmt.Sprintf("X'%x'", v)
		}
		return fmt.Sprintf(`'\x%x'`, v)
	}
	return fmt.Sprint(v)
}

// load makes a database out of a file.
func load(t *testing.T, e *testdb.Env, name string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if e.Name == "sqlite" {
		source, err := url.Parse(e.Source)
		if err != nil {
			t.Fatal(err)
		}
		path, err := url.PathUnescape(source.Opaque)
		if err == nil && path == "" {
			path = source.Path
		}
		if err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		e.DB = e.Pool(t)
		return
	}
	e.DB = e.Pool(t)
	for statement := range strings.SplitSeq(string(text), ";\n") {
		if statement = strings.TrimSpace(statement); statement == "" {
			continue
		}
		if _, err := e.DB.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
