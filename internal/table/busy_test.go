package table_test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// Without a write-ahead log, a reader keeps a writer from committing: the commit is refused, and
// the transaction is still open. What the pinned connection does next must not be part of it, or a
// grant would be one that no other session can see.
func TestACommitThatIsRefusedLeavesNoTransactionOpen(t *testing.T) {
	var pool *sql.DB
	t.Cleanup(func() { _ = pool.Close() }) // after the tables are gone
	e := testdb.Kinds[0].Open(t)
	if err := e.DB.Close(); err != nil {
		t.Fatal(err)
	}
	e.Source = strings.Replace(e.Source, "WAL", "DELETE", 1)
	pool, err := sql.Open(e.Driver, e.Source)
	if err != nil {
		t.Fatal(err)
	}
	e.DB = pool
	r := newRig(t, e, adapter.Update, 1)
	release(t, r.clean, hold(t, r.clean, "dead"))
	e.Exec(t, `UPDATE {rowlock} SET expires_at = {now} - {second}`)

	conn, err := e.DB.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	rows, err := conn.QueryContext(t.Context(), e.SQL(`SELECT bucket FROM {rowlock_floor}`))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	rows.Next() // has the file's read lock from here on

	swept, got := make(chan error, 1), make(chan lease.Acquired, 1)
	r.log.Reset()
	go func() { _, err := r.store.Sweep(t.Context(), lease.SweepOptions{}); swept <- err }()
	commits := func(op faultdb.Op) bool { return op.Kind == faultdb.Commit || op.Query == "COMMIT" }
	for r.log.Count(commits) == 0 {
		time.Sleep(time.Millisecond)
	}
	req := lease.AcquireRequest{Key: "key", Owner: lease.NewOwner(), TTL: ttl}
	go func() { // waits for the pinned connection behind the commit
		a, _ := ask(t.Context(), r.store, req)
		got <- a
	}()
	// The commit waits a tenth of a second for the reader, and is refused.
	time.Sleep(300 * time.Millisecond)
	wantIs(t, rows.Close(), nil)
	a := <-got
	wantIs(t, <-swept, nil)
	if row := r.row(t, "key"); a.Granted && (row.Owner != req.Owner || row.Token != a.Token) {
		t.Errorf("granted %+v, and the row is %+v", a, row)
	} else if !a.Granted {
		t.Errorf("got %+v", a)
	}
}
