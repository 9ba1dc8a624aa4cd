package sqlite_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	driving "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// file is a database with rowlock's tables, and connections to it.
type file struct {
	*testdb.Env
	testing.TB
}

func newFile(t testing.TB) *file {
	i := slices.IndexFunc(testdb.Kinds, func(k testdb.Kind) bool { return k.Name == "sqlite" })
	return &file{testdb.Kinds[i].Open(t), t}
}

func (f *file) path() string {
	return strings.TrimPrefix(f.Source[:strings.IndexByte(f.Source, '?')], "file:")
}

// open returns a connection made with a DSN of its own.
func (f *file) open(path, options string) *sql.Conn {
	f.Helper()
	pool, err := sql.Open("sqlite", "file:"+path+"?"+options)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = pool.Close() })
	c, err := pool.Conn(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = c.Close() })
	return c
}

// conn returns a connection that waits for no lock.
func (f *file) conn() *sql.Conn { return f.open(f.path(), "_pragma=busy_timeout(0)") }

func (f *file) run(c *sql.Conn, queries ...string) error {
	for _, q := range queries {
		if _, err := c.ExecContext(f.Context(), f.SQL(q)); err != nil {
			return err
		}
	}
	return nil
}

func (f *file) must(c *sql.Conn, queries ...string) {
	f.Helper()
	if err := f.run(c, queries...); err != nil {
		f.Fatal(err)
	}
}

const (
	insert = `INSERT INTO {rowlock} (key, token, acquired_at, expires_at) VALUES (x'61', 1, 0, 0)`
	update = `UPDATE {rowlock} SET token = token + 1`
)

// Each class of error, provoked on a real file.
var provoked = []struct {
	name    string
	code    int // the extended one
	class   sqlstore.Class
	as      error
	provoke func(f *file) error
}{
	{"another has the write lock", sqlite3.SQLITE_BUSY, sqlstore.Conflict, nil, func(f *file) error {
		a, b := f.conn(), f.conn()
		f.must(a, `BEGIN IMMEDIATE`)
		return f.run(b, insert)
	}},
	{"another wrote since the snapshot", sqlite3.SQLITE_BUSY_SNAPSHOT, sqlstore.Conflict, nil, func(f *file) error {
		a, b := f.conn(), f.conn()
		f.must(a, `BEGIN`)
		var n int
		if err := a.QueryRowContext(f.Context(), f.SQL(`SELECT count(*) FROM {rowlock}`)).Scan(&n); err != nil {
			return err
		}
		f.must(b, insert)
		return f.run(a, update)
	}},
	// Locked by another connection of a shared cache, it would be LOCKED_SHAREDCACHE; the
	// driver waits for that one to end, and no context ends the waiting.
	{"a statement is still reading the table", sqlite3.SQLITE_LOCKED, sqlstore.Conflict, nil, func(f *file) error {
		c := f.conn()
		f.must(c, `CREATE TABLE t (n)`, `INSERT INTO t VALUES (1), (2)`)
		rows, err := c.QueryContext(f.Context(), `SELECT n FROM t`)
		if err != nil {
			return err
		}
		defer rows.Close()
		rows.Next()
		return f.run(c, `DROP TABLE t`)
	}},
	{"interrupted, of which the driver says something else", 0, sqlstore.Unknown, nil, func(f *file) error {
		ctx, cancel := context.WithTimeout(f.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := f.conn().ExecContext(ctx, `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n`)
		return err
	}},
	{"disk full", sqlite3.SQLITE_FULL, sqlstore.Conflict, nil, func(f *file) error {
		c := f.conn()
		f.must(c, `CREATE TABLE large (b)`, `PRAGMA max_page_count = 1`) // no less than it has
		return f.run(c, `INSERT INTO large VALUES (randomblob(1000000))`)
	}},
	{"opened read-only", sqlite3.SQLITE_READONLY, sqlstore.Refused, lease.ErrReadOnly, func(f *file) error {
		return f.run(f.open(f.path(), "mode=ro"), insert)
	}},
	{"query only", sqlite3.SQLITE_READONLY, sqlstore.Refused, lease.ErrReadOnly, func(f *file) error {
		return f.run(f.open(f.path(), "_pragma=query_only(1)"), insert)
	}},
	{"cannot be opened", sqlite3.SQLITE_CANTOPEN, sqlstore.Refused, lease.ErrConfig, func(f *file) error {
		pool, err := sql.Open("sqlite", "file:"+filepath.Join(f.TempDir(), "nosuch", "file.db"))
		if err != nil {
			return err
		}
		defer pool.Close()
		return pool.PingContext(f.Context())
	}},
	{"check constraint", sqlite3.SQLITE_CONSTRAINT_CHECK, sqlstore.Refused, lease.ErrCorrupt, func(f *file) error {
		return f.run(f.conn(), `UPDATE {rowlock_meta} SET start = -1`)
	}},
	{"raised", sqlite3.SQLITE_CONSTRAINT_TRIGGER, sqlstore.Refused, sqlstore.ErrRaised, func(f *file) error {
		return f.run(f.conn(), insert, `CREATE TRIGGER no BEFORE UPDATE ON {rowlock} BEGIN SELECT RAISE(ABORT, 'no'); END`, update)
	}},
	{"primary key", sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlstore.Refused, lease.ErrCorrupt, func(f *file) error {
		return f.run(f.conn(), insert, insert)
	}},
	{"token out of range", sqlite3.SQLITE_CONSTRAINT_DATATYPE, sqlstore.Refused, lease.ErrCorrupt, func(f *file) error {
		return f.run(f.conn(), insert, `UPDATE {rowlock} SET token = 9223372036854775807`, update)
	}},
	{"datatype mismatch", sqlite3.SQLITE_MISMATCH, sqlstore.Refused, lease.ErrCorrupt, func(f *file) error {
		return f.run(f.conn(), `CREATE TABLE t (n INTEGER PRIMARY KEY)`, `INSERT INTO t VALUES ('x')`)
	}},
	{"not a database", sqlite3.SQLITE_NOTADB, sqlstore.Refused, lease.ErrWrongDialect, func(f *file) error {
		path := filepath.Join(f.TempDir(), "garbage.db")
		if err := os.WriteFile(path, []byte(strings.Repeat("not a database, ", 100)), 0o600); err != nil {
			return err
		}
		return f.run(f.open(path, ""), `SELECT 1 FROM sqlite_master`)
	}},
	{"malformed", sqlite3.SQLITE_CORRUPT, sqlstore.Refused, lease.ErrCorrupt, func(f *file) error {
		path := filepath.Join(f.TempDir(), "malformed.db")
		f.must(f.open(path, ""), `CREATE TABLE t (n)`, `INSERT INTO t VALUES (1)`)
		whole, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		copy(whole[100:], strings.Repeat("\xff", 200)) // the header of the first page's tree
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			return err
		}
		return f.run(f.open(path, ""), `SELECT * FROM t`)
	}},
	{"too big", sqlite3.SQLITE_TOOBIG, sqlstore.Refused, nil, func(f *file) error {
		return f.run(f.conn(), `SELECT length(zeroblob(2000000000))`)
	}},
	{"missing table", sqlite3.SQLITE_ERROR, sqlstore.Refused, lease.ErrNoSchema, func(f *file) error {
		return f.run(f.conn(), `SELECT 1 FROM nosuch`)
	}},
	{"missing column", sqlite3.SQLITE_ERROR, sqlstore.Refused, lease.ErrSchemaVersion, func(f *file) error {
		return f.run(f.conn(), `SELECT nosuch FROM {rowlock}`)
	}},
	{"any other error", sqlite3.SQLITE_ERROR, sqlstore.Unknown, nil, func(f *file) error {
		return f.run(f.conn(), `SELECT abs(-9223372036854775808)`)
	}},
}

func TestErrorsOfARealFileAreClassified(t *testing.T) {
	for _, p := range provoked {
		t.Run(p.name, func(t *testing.T) {
			f := newFile(t)
			err := p.provoke(f)
			var e *driving.Error
			if err == nil || errors.As(err, &e) != (p.code != 0) || p.code != 0 && e.Code() != p.code {
				t.Fatalf("provoked %v, want code %d", err, p.code)
			}
			wantVerdict(t, f.Dialect, err, p.class, p.as)
			wantVerdict(t, f.Dialect, fmt.Errorf("wrapped: %w", err), p.class, p.as)
			if v := sqlstore.Judge(f.Dialect, conn.NotSent{Err: err}); v.Class == sqlstore.Unknown {
				t.Errorf("an error before anything was sent is %s", v.Class)
			}
		})
	}
}

func wantVerdict(t testing.TB, d *sqlstore.Dialect, err error, class sqlstore.Class, as error) {
	t.Helper()
	if v := d.Classify(err); v.Class != class || !errors.Is(v.As, as) {
		t.Errorf("%v is %s, %v; want %s, %v", err, v.Class, v.As, class, as)
	}
}

// definite are the primary codes that say by themselves that nothing was applied.
var definite = []int{
	sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY,
	sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_CORRUPT,
	sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_PROTOCOL,
}

func TestAnErrorThatIsNotKnownLeavesTheOutcomeUnknown(t *testing.T) {
	d := sqlstore.Of(sqlite.New())
	for _, err := range []error{
		errors.New("anything"), io.EOF, io.ErrUnexpectedEOF, driver.ErrBadConn, sql.ErrConnDone, sql.ErrTxDone, context.Canceled, context.DeadlineExceeded,
	} {
		wantVerdict(t, d, err, sqlstore.Unknown, nil)
		if d.Native(err) {
			t.Errorf("%v is taken for SQLite's own", err)
		}
	}
	for code := range 1 << 16 {
		if !d.Native(withCode(code)) {
			t.Fatalf("code %d is taken for another product's", code)
		}
		v := d.Classify(withCode(code))
		if known := slices.Contains(definite, code&0xff); known != (v.Class != sqlstore.Unknown) {
			t.Errorf("code %d is %s", code, v.Class)
		}
	}
}

// withCode makes an error of the driver's with any code, for which it exports no constructor.
func withCode(code int) error {
	e := new(driving.Error)
	field := reflect.ValueOf(e).Elem().FieldByName("code")
	reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().SetInt(int64(code))
	return e
}

// FuzzClassify: a code that is not known to say what became of the statement says that it is not.
func FuzzClassify(f *testing.F) {
	for _, code := range []int{0, 1, 5, 8, 10, 11, 19, 262, 517, 1299, -1} {
		f.Add(code, "no such table: rowlock")
	}
	f.Fuzz(func(t *testing.T, code int, text string) {
		d := sqlstore.Of(sqlite.New())
		v, known := d.Classify(withCode(code)), slices.Contains([]int{3, 5, 6, 8, 9, 11, 13, 14, 15, 18, 19, 20, 26}, code&0xff)
		if known == (v.Class == sqlstore.Unknown) {
			t.Errorf("code %d is %+v", code, v)
		}
		if v := d.Classify(errors.New(text)); v != (sqlstore.Verdict{}) {
			t.Errorf("%q is %+v", text, v)
		}
	})
}
