package schema_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
)

// locking is a session that lets no other read rowlock's tables, until end is called.
func locking(t *testing.T, s server, db *sql.DB) (end func()) {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	lock, unlock := "LOCK TABLES rowlock WRITE, rowlock_meta WRITE, rowlock_floor WRITE", "UNLOCK TABLES"
	if s.name == "postgres" {
		lock, unlock = "BEGIN; LOCK TABLE rowlock, rowlock_meta, rowlock_floor", "ROLLBACK"
	}
	if _, err := conn.ExecContext(t.Context(), lock); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := conn.ExecContext(t.Context(), unlock); err != nil {
			t.Error(err)
		}
	}
}

// opening is a process that starts.
func opening(s server, db *sql.DB) <-chan error {
	opened := make(chan error, 1)
	go func() {
		c, err := rowlock.Open(db, s.dialect(), nil)
		if err == nil {
			err = c.Close()
		}
		opened <- err
	}()
	return opened
}

// A migration makes each statement on a table wait behind its own, for a second. On a slow machine
// that is as long as a migration waits: a process that starts must wait for longer.
func TestAProcessThatStartsWaitsForALockedTable(t *testing.T) {
	for _, s := range []server{onPostgres, onMySQL, onMariaDB} {
		on(t, s, func(t *testing.T, s server) {
			t.Parallel()
			db := s.open(t)
			migrate(t, s, db)
			end := locking(t, s, db)
			opened := opening(s, db)
			select {
			case err := <-opened:
				t.Fatalf("did not wait: %v", err)
			case <-time.After(3 * time.Second):
			}
			end()
			if err := <-opened; err != nil {
				t.Error(err)
			}
		})
	}
}

// Nor is it refused because its role waits for no longer than a moment.
func TestARolesShortLockTimeoutRefusesNoProcessThatStarts(t *testing.T) {
	on(t, onPostgres, func(t *testing.T, s server) {
		t.Parallel()
		driver, dsn := s.fresh(t, s)
		db, err := sql.Open(driver, dsn+"&lock_timeout=50")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		migrate(t, s, db)
		end := locking(t, s, db)
		opened := opening(s, db)
		select {
		case err := <-opened:
			t.Fatalf("did not wait: %v", err)
		case <-time.After(time.Second):
		}
		end()
		if err := <-opened; err != nil {
			t.Error(err)
		}
	})
}
