package upgrade_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/schema"
)

// first are the tables of the first version, with a process that has opened them and goes on. It is
// of this version, and uses exclusive locks alone, whose statements are those of the first.
type first struct {
	*testing.T
	*testdb.Env
	last   sync.Map // the greatest token of each key, as it was told
	grants atomic.Int64
}

func (f *first) client(fair bool) *rowlock.Client {
	f.Helper()
	f.Exec(f.T, `UPDATE {rowlock_meta} SET value = '2' WHERE name = 'schema_version'`)
	store := openStoreWith(f.T, f.Env, f.Dialect.Wrapped(withoutEras))
	f.Exec(f.T, `UPDATE {rowlock_meta} SET value = '1' WHERE name = 'schema_version'`)
	return f.clientOn(store, fair)
}

// withoutEras is a database for a process of a version that knows no eras.
func withoutEras(db sqlstore.Database, f sqlstore.Features) (sqlstore.Database, sqlstore.Features) {
	f.OneHistory = true
	return eraless{db}, f
}

type eraless struct{ sqlstore.Database }

func (d eraless) ProbeTable(ctx context.Context, conn *sql.Conn, table string) error {
	if table == "rowlock_era" {
		return nil
	}
	return d.Database.ProbeTable(ctx, conn, table)
}

func (f *first) clientOn(store lease.Store, fair bool) *rowlock.Client {
	f.Helper()
	c, err := rowlock.New(store, &rowlock.Config{Fair: fair, Reaper: rowlock.ReaperConfig{Off: true}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = c.Close() })
	return c
}

// work locks and unlocks a few keys until it is to stop, and adds one to a counter in the
// transaction that fences. No call may fail, and no token may be smaller than one before it.
func (f *first) work(ctx context.Context, c *rowlock.Client, prefix string) {
	for i := 0; ctx.Err() == nil; i++ {
		key := fmt.Sprintf("%s %d", prefix, i%3)
		l, err := c.Lock(context.WithoutCancel(ctx), key)
		if err != nil {
			f.Errorf("lock %q: %v", key, err)
			return
		}
		if before, told := f.last.Swap(key, l.Token()); told && before.(int64) >= l.Token() {
			f.Errorf("%q: token %d after %d", key, l.Token(), before)
		}
		if i%5 == 0 {
			f.add(l)
		}
		if err := l.Unlock(context.WithoutCancel(ctx)); err != nil {
			f.Errorf("unlock %q: %v", key, err)
		}
		f.grants.Add(1)
	}
}

func (f *first) add(l *rowlock.Lock) {
	ctx := context.Background()
	tx, err := f.DB.BeginTx(ctx, nil)
	if err == nil {
		defer tx.Rollback()
		err = l.Fence(ctx, tx)
	}
	if err == nil {
		_, err = tx.ExecContext(ctx, "UPDATE counter SET n = n + 1")
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil && !errors.Is(err, rowlock.ErrBusy) {
		f.Errorf("fenced: %v", err)
	}
}

// The tables get their next version while processes of the first work in them, and go on. A process
// of the next version then works beside them on the same keys.
func TestTheNextVersionComesUnderLoad(t *testing.T) {
	onEach(t, func(t *testing.T, e *testdb.Env) {
		f := &first{T: t, Env: e}
		load(t, e, file(1, e.Name))
		if _, err := e.DB.Exec("CREATE TABLE counter (n INTEGER NOT NULL)"); err != nil {
			t.Fatal(err)
		}
		if _, err := e.DB.Exec("INSERT INTO counter VALUES (0)"); err != nil {
			t.Fatal(err)
		}
		old, fair := f.client(false), f.client(true)
		held, err := old.Lock(t.Context(), "held all the time")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var working sync.WaitGroup
		for range 3 {
			working.Go(func() { f.work(ctx, old, "plain") })
			working.Go(func() { f.work(ctx, fair, "fair") })
		}
		f.wantGrants(50)
		began := time.Now()
		var migrating sync.WaitGroup
		for range 3 {
			migrating.Go(func() {
				if err := schema.Migrate(t.Context(), e.DB, e.Dialect); err != nil {
					t.Errorf("migrate: %v", err)
				}
			})
		}
		migrating.Wait()
		t.Logf("migrated within %s, beside %d grants", time.Since(began), f.grants.Load())
		f.wantGrants(50)
		next, nextFair := f.clientOn(openStore(t, e), false), f.clientOn(openStore(t, e), true)
		for range 2 {
			working.Go(func() { f.work(ctx, next, "plain") })
			working.Go(func() { f.work(ctx, nextFair, "fair") })
		}
		f.wantGrants(100)
		stop()
		working.Wait()
		if err := context.Cause(held.Context()); err != nil {
			t.Errorf("what was held all the time has ended: %v", err)
		}
		if err := held.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// wantGrants waits for so many more.
func (f *first) wantGrants(n int64) {
	f.Helper()
	until := f.grants.Load() + n
	for began := time.Now(); f.grants.Load() < until; time.Sleep(time.Millisecond) {
		if time.Since(began) > time.Minute {
			f.Fatalf("%d grants in a minute, want %d", n-until+f.grants.Load(), n)
		}
	}
}
