package table_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A transaction whose session the server has ended was of the right database all the same: a user
// who reads that it was not would look for a mistake in the pools.
func TestATransactionThatTheServerEndedIsNotForeign(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		if e.Dialect.Name() == "sqlite" {
			return // no server ends its sessions
		}
		r := newRig(t, e, adapter.Update, 2)
		l := hold(t, r.clean, "k")
		for name, f := range map[string]func(context.Context, lease.Runner, lease.Lease) error{"fence": r.clean.Fence, "unlock": r.clean.ReleaseTx} {
			tx, err := r.DB.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			r.kill(t, tx)
			err = f(t.Context(), lease.InTx(tx), l)
			_ = tx.Rollback()
			if wantNot(t, err, lease.ErrForeignTx, lease.ErrFenced); err == nil {
				t.Errorf("%s passed in a session that was ended", name)
			}
		}
	})
}

// kill ends the session of tx.
func (r *rig) kill(t *testing.T, tx *sql.Tx) {
	t.Helper()
	ask, end := `SELECT pg_backend_pid()`, `SELECT pg_terminate_backend(%d)`
	if r.Dialect.Name() == "mysql" {
		ask, end = `SELECT CONNECTION_ID()`, `KILL %d`
	}
	var id int64
	err := tx.QueryRowContext(t.Context(), ask).Scan(&id)
	if err == nil {
		_, err = r.DB.ExecContext(t.Context(), fmt.Sprintf(end, id))
	}
	if err != nil {
		t.Fatal(err)
	}
	for gone := int64(0); gone == 0; { // it is ended a moment later
		look := `SELECT 1 - COUNT(*) FROM pg_stat_activity WHERE pid = %d`
		if r.Dialect.Name() == "mysql" {
			look = `SELECT 1 - COUNT(*) FROM information_schema.processlist WHERE id = %d`
		}
		err := r.DB.QueryRowContext(t.Context(), fmt.Sprintf(look, id)).Scan(&gone)
		// MySQL cannot list sessions while a statement of one has binary parameters.
		if err != nil && !strings.Contains(err.Error(), "Error 3854") {
			t.Fatal(err)
		}
	}
}

// What pgx itself says of a transaction that is over, or of a connection that is closed or reads
// rows, says nothing of the database.
func TestATransactionOfPgxThatIsOverIsNotForeign(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		if e.Dialect.Name() != "postgres" {
			return
		}
		r := newRig(t, e, adapter.Update, 2)
		lock := inTx{r.clean, hold(t, r.clean, "k")}
		for name, spoil := range map[string]func(*pgx.Conn, pgx.Tx) error{
			"rolled back": func(_ *pgx.Conn, tx pgx.Tx) error { return tx.Rollback(t.Context()) },
			"closed":      func(c *pgx.Conn, _ pgx.Tx) error { return c.Close(t.Context()) },
			"reading":     func(_ *pgx.Conn, tx pgx.Tx) error { _, err := tx.Query(t.Context(), `SELECT 1`); return err },
		} {
			conn, err := pgx.Connect(t.Context(), e.Source)
			if err != nil {
				t.Fatal(err)
			}
			tx, err := conn.Begin(t.Context())
			if err == nil {
				err = spoil(conn, tx)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range []error{postgres.Fence(t.Context(), tx, lock), postgres.UnlockTx(t.Context(), tx, lock)} {
				if wantNot(t, err, lease.ErrForeignTx, lease.ErrFenced); err == nil {
					t.Errorf("%s: it passed", name)
				}
			}
			_ = conn.Close(t.Context())
		}
	})
}

// inTx is a lease as dialect/postgres takes locks.
type inTx struct {
	store *table.Store
	l     lease.Lease
}

func (i inTx) FenceIn(ctx context.Context, tx lease.Runner) error { return i.store.Fence(ctx, tx, i.l) }

func (i inTx) UnlockIn(ctx context.Context, tx lease.Runner) error {
	return i.store.ReleaseTx(ctx, tx, i.l)
}
