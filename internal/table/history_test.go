package table_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/era"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A history is known if it is the newest that the tables have. The row that is locked is none, and
// a table of the same name elsewhere is another.
func TestAServerKnowsWhetherItsHistoryIsTheNewest(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		if e.Name == "sqlite" {
			t.Skip("a file has a history for each process that has it open")
		}
		if e.Driver == "mysql" {
			elsewhere := fmt.Sprintf("elsewhere_%d", os.Getpid())
			e.Exec(t, "CREATE DATABASE "+elsewhere)
			t.Cleanup(func() { e.Exec(t, "DROP DATABASE "+elsewhere) })
			e.Exec(t, "CREATE TABLE "+elsewhere+"."+e.Dialect.Names().Prefix+"rowlock (n INT)")
		}
		s := eras(t, e, "{now}")
		if err := e.Dialect.Setup(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		own := look(t, e, s, 0, -1, false).Name
		record := func(name string, start int) {
			t.Helper()
			if _, err := s.Exec(t.Context(), e.Dialect.Text("era-write"), name, start); err != nil {
				t.Fatal(err)
			}
		}
		record(own, 20)
		look(t, e, s, 1, 20, true)
		record("era/older", 10)
		look(t, e, s, 2, 20, true)
		record("era/newer", 30)
		look(t, e, s, 3, 30, false)
	})
}

func look(t *testing.T, e *testdb.Env, s *conn.Session, recorded int, newest lease.Token, known bool) sqlstore.History {
	t.Helper()
	h, err := e.Dialect.History(t.Context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if int(h.Recorded) != recorded || h.Known != known || recorded > 0 && h.Newest != newest {
		t.Errorf("got %+v; want %d recorded, the newest %d, known %t", h, recorded, newest, known)
	}
	return h
}

// A process that is open reads the tables' version with each new connection, because it never opens
// them again. The connection is refused, although it could renew without an era.
func TestANewSessionOfTablesThatAreTooNewIsRefused(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		eras := era.New(e.Dialect, nil)
		defer eras.Close()
		setup := eras.After(e.Dialect.Setup)
		if err := setup(t.Context(), e.Session(t)); err != nil {
			t.Fatal(err)
		}
		for value, refused := range map[string]bool{
			fmt.Sprint(sqlstore.SchemaVersion): false, fmt.Sprint(sqlstore.SchemaVersion + 1): true, "none": true,
		} {
			for _, name := range []string{"compatible_from", "compatible_from/shared"} {
				e.Exec(t, `UPDATE {rowlock_meta} SET value = ? WHERE name = ?`, value, name)
				err := setup(t.Context(), e.Session(t))
				if errors.Is(err, lease.ErrSchemaVersion) != refused || !refused && err != nil {
					t.Errorf("%s %s: %v", name, value, err)
				}
				e.Exec(t, `UPDATE {rowlock_meta} SET value = ? WHERE name = ?`, fmt.Sprint(sqlstore.SchemaVersion), name)
			}
		}
	})
}
