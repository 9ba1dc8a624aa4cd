package section

import (
	"context"
	"database/sql"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/schema"
)

// TestASectionBeginsThoughTheApplicationHasLeftTransactionsOpen: on each connection that the pool
// lends. On SQLite a refused BEGIN IMMEDIATE would keep the file's write lock for good.
func TestASectionBeginsThoughTheApplicationHasLeftTransactionsOpen(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		db := e.Pool(t)
		db.SetMaxIdleConns(4)
		locks, err := rowlock.Open(db, e.Dialect, nil)
		must(t, err)
		defer locks.Close()
		left := func() {
			var lent []*sql.Conn
			for range 4 {
				conn, err := db.Conn(t.Context())
				must(t, err)
				_, _ = conn.ExecContext(t.Context(), "ROLLBACK") // of the time before
				_, err = conn.ExecContext(t.Context(), "BEGIN")
				must(t, err)
				lent = append(lent, conn)
			}
			for _, conn := range lent {
				must(t, conn.Close())
			}
		}
		left()
		must(t, locks.DoTx(t.Context(), "k", func(context.Context, *sql.Tx) error { return nil }))
		left()
		keys, err := once.New(db, e.Dialect, nil)
		must(t, err)
		defer keys.Close()
		left()
		other := e.New(dialect.Prefix("left_"))
		t.Cleanup(func() { must(t, schema.Uninstall(context.Background(), e.DB, other)) })
		must(t, schema.Migrate(t.Context(), db, other))
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
