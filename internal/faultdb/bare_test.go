package faultdb_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/faultdb"
)

// bare is a driver from before contexts: it has what it must and nothing else. It records what it is told to do.
type bare struct{ told []string }

func (b *bare) tell(what string) { b.told = append(b.told, what) }

func (b *bare) Open(dsn string) (driver.Conn, error) {
	b.tell("open " + dsn)
	return &bareConn{b}, nil
}

// Connect and Driver make it a connector, and Close one that wants to be closed.
func (b *bare) Connect(context.Context) (driver.Conn, error) { return b.Open("connector") }
func (b *bare) Driver() driver.Driver                        { return b }
func (b *bare) Close() error                                 { b.tell("close connector"); return nil }

type bareConn struct{ *bare }

func (c *bareConn) Prepare(query string) (driver.Stmt, error) {
	c.tell("prepare " + query)
	return &bareStmt{c.bare, query}, nil
}
func (c *bareConn) Begin() (driver.Tx, error) { c.tell("begin"); return &bareTx{c.bare}, nil }
func (c *bareConn) Close() error              { c.tell("close"); return nil }

type bareTx struct{ *bare }

func (t *bareTx) Commit() error   { t.tell("commit"); return nil }
func (t *bareTx) Rollback() error { t.tell("rollback"); return nil }

type bareStmt struct {
	*bare
	query string
}

func (s *bareStmt) Close() error  { s.tell("close " + s.query); return nil }
func (s *bareStmt) NumInput() int { return strings.Count(s.query, "?") }

func (s *bareStmt) Exec(args []driver.Value) (driver.Result, error) {
	s.tell("exec " + s.query)
	if slices.ContainsFunc(args, func(v driver.Value) bool { return v != "converted" }) {
		return nil, errors.New("an argument was not converted")
	}
	return driver.ResultNoRows, nil
}

func (s *bareStmt) Query([]driver.Value) (driver.Rows, error) {
	s.tell("query " + s.query)
	return &bareRows{s.bare, []int{2, 1}, []byte{0}}, nil
}

// ColumnConverter makes every argument the same.
func (s *bareStmt) ColumnConverter(int) driver.ValueConverter { return converter{} }

type converter struct{}

func (converter) ConvertValue(any) (driver.Value, error) { return "converted", nil }

// bareRows are tables of so many rows, after which there is one more that cannot be got at.
type bareRows struct {
	*bare
	sets []int
	buf  []byte // one for all rows, as drivers have
}

var errNoTable = errors.New("no table")

func (r *bareRows) Columns() []string { return []string{"n"} }
func (r *bareRows) Close() error      { return nil }
func (r *bareRows) Next(dest []driver.Value) error {
	if r.sets[0] == 0 {
		r.tell("no more rows")
		return io.EOF
	}
	r.buf[0] = byte(r.sets[0])
	dest[0] = r.buf
	r.sets[0]--
	return nil
}
func (r *bareRows) HasNextResultSet() bool { return true }
func (r *bareRows) NextResultSet() error {
	if r.sets = r.sets[1:]; len(r.sets) == 0 {
		r.sets = []int{0}
		return errNoTable
	}
	return nil
}

var registered = &bare{}

func init() { sql.Register("bare", registered) }

func wantTold(t *testing.T, b *bare, want ...string) {
	t.Helper()
	if !slices.Equal(b.told, want) {
		t.Errorf("the driver was told %q\nwant %q", b.told, want)
	}
}

func TestADriverWithoutContexts(t *testing.T) {
	b := &bare{}
	var log faultdb.Log
	db := sql.OpenDB(faultdb.Wrap(b, &log))
	wantIs(t, db.PingContext(t.Context()), nil)
	_, err := db.ExecContext(t.Context(), "insert ?", 1)
	wantIs(t, err, nil)
	tx, err := db.BeginTx(t.Context(), nil)
	wantIs(t, err, nil)
	wantIs(t, tx.Commit(), nil)
	if _, err = db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true}); err == nil {
		t.Error("transaction options were dropped in silence")
	}
	if _, err = db.ExecContext(t.Context(), "insert ?", sql.Named("a", 1)); err == nil {
		t.Error("the name of an argument was dropped in silence")
	}
	wantIs(t, db.Close(), nil)
	wantTold(t, b, "open connector", "prepare insert ?", "exec insert ?", "close insert ?", "begin", "commit",
		"prepare insert ?", "close insert ?", "close", "close connector")
	if got := log.Count(func(op faultdb.Op) bool { return op.Kind == faultdb.Exec && op.Prepared }); got != 2 {
		t.Errorf("%d executions were seen, want 2", got)
	}
}

func TestOpenFindsARegisteredDriver(t *testing.T) {
	registered.told = nil
	db, err := faultdb.Open("bare", "dsn", nil)
	wantIs(t, err, nil)
	if db.Driver() != driver.Driver(registered) {
		t.Errorf("Driver is a %T", db.Driver())
	}
	wantIs(t, db.PingContext(t.Context()), nil)
	wantIs(t, db.Close(), nil)
	wantTold(t, registered, "open dsn", "close")
	if _, err := faultdb.Open("no such driver", "", nil); err == nil {
		t.Error("a driver nobody registered was opened")
	}
}

func TestACutClosesTheRealConnectionOnce(t *testing.T) {
	b := &bare{}
	db := sql.OpenDB(faultdb.Wrap(b, faultdb.OnMatch("two", faultdb.Always(faultdb.FailBeforeSend()))))
	conn, err := db.Conn(t.Context())
	wantIs(t, err, nil)
	one, err := conn.PrepareContext(t.Context(), "one")
	wantIs(t, err, nil)
	_, err = conn.ExecContext(t.Context(), "two")
	wantIs(t, err, faultdb.ErrCut)
	_, err = one.ExecContext(t.Context())
	wantIs(t, err, sql.ErrConnDone)
	wantIs(t, one.Close(), nil)
	_ = conn.Close()
	wantIs(t, db.Close(), nil)
	wantTold(t, b, "open connector", "prepare one", "prepare two", "close two", "close one", "close", "close connector")
}

func TestALostReplyIsReadToItsEnd(t *testing.T) {
	b := &bare{}
	db := sql.OpenDB(faultdb.Wrap(b, faultdb.OnKind(faultdb.Always(faultdb.LoseReply()), faultdb.Query)))
	_, err := db.QueryContext(t.Context(), "select")
	wantIs(t, err, faultdb.ErrCut)
	wantIs(t, db.Close(), nil)
	wantTold(t, b, "open connector", "prepare select", "query select", "no more rows", "no more rows", "close select",
		"close", "close connector")
}

func TestResultSetsAreReplayed(t *testing.T) {
	open := faultdb.NewGate()
	open.Release()
	for name, inj := range map[string]faultdb.Injector{
		"passed on": nil,
		"replayed":  faultdb.Always(faultdb.BlockAfter(open)),
	} {
		t.Run(name, func(t *testing.T) {
			db := sql.OpenDB(faultdb.Wrap(&bare{}, inj))
			defer db.Close()
			rows, err := db.QueryContext(t.Context(), "select")
			wantIs(t, err, nil)
			defer rows.Close()
			for set := range 2 {
				for n := 2 - set; n > 0; n-- {
					var got []byte
					if !rows.Next() || rows.Scan(&got) != nil || int(got[0]) != n {
						t.Fatalf("table %d: got %v, want %d", set, got, n)
					}
				}
				if rows.Next() {
					t.Fatalf("table %d has no end", set)
				}
				if more := rows.NextResultSet(); more != (set == 0) {
					t.Fatalf("table %d: another one: %v", set, more)
				}
			}
			wantIs(t, rows.Err(), errNoTable)
		})
	}
}
