package table_test

import (
	"fmt"
	"testing"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// eras leaves these eras, and the row that is locked. made says when the tables were.
func eras(t *testing.T, e *testdb.Env, made string, starts ...int) *conn.Session {
	t.Helper()
	e.Exec(t, `DELETE FROM {rowlock_meta} WHERE name LIKE 'era%'`)
	e.Exec(t, `INSERT INTO {rowlock_meta} (name, start, since) VALUES ('eras', 0, `+made+`)`)
	for _, start := range starts {
		e.Exec(t, `INSERT INTO {rowlock_meta} (name, start, since) VALUES (?, ?, {now})`, fmt.Sprint("era/history ", start), start)
	}
	return e.Session(t)
}

// Old eras are dropped from the oldest, and the row that era-lock locks is no era.
func TestErasAreDroppedFromTheOldestAndTheLockStays(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		s := eras(t, e, "{now}", 10, 40, 30, 20)
		var oldest int64
		if err := s.QueryRow(t.Context(), e.Dialect.Text("era-kept"), []any{1}, &oldest); err != nil || oldest != 30 {
			t.Errorf("the second newest era begins at %d, want 30; %v", oldest, err)
		}
		if err := s.QueryRow(t.Context(), e.Dialect.Text("era-kept"), []any{4}, &oldest); err == nil {
			t.Errorf("a fifth era begins at %d, and there are four", oldest)
		}
		if n, err := s.Change(t.Context(), e.Dialect.Text("era-drop"), 20); err != nil || n != 2 {
			t.Errorf("%d eras were dropped, want 2; %v", n, err)
		}
		var locks int
		query := e.SQL(`SELECT COUNT(*) FROM {rowlock_meta} WHERE name = 'eras'`)
		if err := e.DB.QueryRowContext(t.Context(), query).Scan(&locks); err != nil || locks != 1 {
			t.Errorf("there are %d rows to lock: %v", locks, err)
		}
	})
}

// Tables are as old as the row that was made with them, however young their eras are.
func TestTablesAreNotFreshBecauseAnEraIs(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for made, want := range map[string]bool{"{now}": true, "{now} - 1000 * {second}": false} {
			if e.Driver == "mysql" && !want {
				made = "{now} - INTERVAL 1000 SECOND"
			}
			s := eras(t, e, made, 10)
			var fresh bool
			err := s.QueryRow(t.Context(), e.Dialect.Text("era-fresh"), nil, &fresh)
			if err != nil || fresh != want {
				t.Errorf("tables made at %s are fresh: %t, %v", made, fresh, err)
			}
			e.Exec(t, `DELETE FROM {rowlock_meta} WHERE name = 'eras'`)
			known := false
			err = s.QueryRow(t.Context(), e.Dialect.Text("era-fresh"), nil, &known)
			if err == nil && known {
				t.Error("tables whose age is unknown are fresh")
			}
		}
	})
}
