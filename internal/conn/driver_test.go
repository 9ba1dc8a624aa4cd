package conn_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// old is a driver of the time before contexts, which database/sql still takes. With preparer it has
// learnt half of it.
type old struct{}

type preparer struct{ old }

func (old) Prepare(string) (driver.Stmt, error) { return oldStmt{}, nil }

func (old) Begin() (driver.Tx, error)                                        { return nil, errors.ErrUnsupported }
func (old) Close() error                                                     { return nil }
func (preparer) PrepareContext(context.Context, string) (driver.Stmt, error) { return oldStmt{}, nil }

type oldStmt struct{}

func (oldStmt) Close() error                               { return nil }
func (oldStmt) NumInput() int                              { return -1 }
func (oldStmt) Exec([]driver.Value) (driver.Result, error) { return driver.ResultNoRows, nil }
func (oldStmt) Query([]driver.Value) (driver.Rows, error)  { return nil, errors.ErrUnsupported }

type connector struct{ conn driver.Conn }

func (c connector) Connect(context.Context) (driver.Conn, error) { return c.conn, nil }
func (c connector) Driver() driver.Driver                        { return nil }

// A driver whose statements take no context, or what another is wrapped in, is refused in words:
// nothing is sent, and nothing panics.
func TestADriverWithoutContextsIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]driver.Conn{"of the connection": old{}, "of the statement": preparer{}} {
		for _, unprepared := range []bool{false, true} {
			db := sql.OpenDB(connector{c})
			pinned, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			s := conn.NewSession(pinned)
			s.EraAt(0)
			s.Unprepared = unprepared
			_, executed := s.Exec(t.Context(), "UPDATE")
			queried := s.Query(t.Context(), "SELECT", nil, func(conn.Columns) error { return nil })
			for _, err := range []error{executed, queried} {
				if !errors.Is(err, lease.ErrUnsupported) || !errors.As(err, new(conn.NotSent)) {
					t.Errorf("%s, unprepared %t: %v, want %v, and nothing sent", name, unprepared, err, lease.ErrUnsupported)
				}
			}
			s.Discard()
			_ = db.Close()
		}
	}
}
