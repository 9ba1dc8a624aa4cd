package schema_test

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
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/schema"
)

// next is a made-up next version, by the rules of docs/contributing/schema-changes.md: it adds a
// column that has a default, and writes compatible_from before the version.
const next = "ALTER TABLE rowlock_queue ADD COLUMN made_up INTEGER NOT NULL DEFAULT 7;\n" + versions

const versions = `UPDATE rowlock_meta SET value = '%[1]d' WHERE name = 'compatible_from';
UPDATE rowlock_meta SET value = '%[2]d' WHERE name = 'schema_version';
`

// fleet are clients of this version that lock a few keys.
type fleet struct {
	*testing.T
	server
	db     *sql.DB
	last   sync.Map // the greatest token of each key
	grants atomic.Int64
}

// newFleet makes tables. SQLite's pool waits for the file, as a client asks for.
func newFleet(t *testing.T, s server) *fleet {
	t.Helper()
	driver, dsn := s.fresh(t, s)
	if s.name == "sqlite" {
		dsn = "file:" + dsn + "?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"
	}
	f := &fleet{T: t, server: s, db: open(t, driver, dsn)}
	migrate(t, s, f.db)
	return f
}

func (f *fleet) open() (*rowlock.Client, error) {
	return rowlock.Open(f.db, f.dialect(), &rowlock.Config{Fair: true, Reaper: rowlock.ReaperConfig{Off: true}})
}

// work locks and unlocks until ctx ends. No call may fail, and no token be smaller than one before.
func (f *fleet) work(ctx context.Context, c *rowlock.Client) {
	for i := 0; ctx.Err() == nil; i++ {
		key := fmt.Sprint("key ", i%3)
		l, err := c.Lock(context.WithoutCancel(ctx), key)
		if err != nil {
			f.Errorf("lock %q: %v", key, err)
			return
		}
		if before, ok := f.last.Swap(key, l.Token()); ok && before.(rowlock.Token) >= l.Token() {
			f.Errorf("%q has the token %d after %d", key, l.Token(), before)
		}
		f.grants.Add(1)
		if err := l.Unlock(context.WithoutCancel(ctx)); err != nil {
			f.Errorf("unlock %q: %v", key, err)
		}
	}
}

func (f *fleet) more(n int64) {
	f.Helper()
	until := f.grants.Load() + n
	for began := time.Now(); f.grants.Load() < until; time.Sleep(time.Millisecond) {
		if time.Since(began) > time.Minute {
			f.Fatalf("%d of %d grants in a minute", n-until+f.grants.Load(), n)
		}
	}
}

// A rolling upgrade: a process of this version that is open goes on while the next version comes
// and after it, and one that restarts opens again.
func TestTheNextVersionLocksNoProcessOut(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		f := newFleet(t, s)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var working sync.WaitGroup
		defer working.Wait()
		start := func() *rowlock.Client {
			c, err := f.open()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			working.Go(func() { f.work(ctx, c) })
			return c
		}
		old := start()
		held, err := old.Lock(ctx, "held all the time")
		if err != nil {
			t.Fatal(err)
		}
		f.more(20)
		up := fmt.Sprintf(next, schema.Version, schema.Version+1)
		if err := schema.Run(t.Context(), f.db, s.dialect(), "migrate", up); err != nil {
			t.Fatal(err)
		}
		f.more(20)
		start()
		migrate(t, s, f.db) // as a process of this version does when it starts: newer tables stay
		f.more(40)
		if v := one[int](t, f.db, "SELECT MAX(value) FROM rowlock_meta WHERE name = 'schema_version'"); v != schema.Version+1 {
			t.Errorf("the tables are of version %d", v)
		}
		stop()
		working.Wait()
		if err := held.Unlock(context.WithoutCancel(ctx)); err != nil {
			t.Errorf("what was held all the time: %v", err)
		}
	})
}

// Tables that allow this version no longer are opened by no client, and by no new connection of one
// that is open.
func TestAVersionThatIsNotCompatibleRefusesEachNewConnection(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		f := newFleet(t, s)
		c, err := f.open()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		up := fmt.Sprintf(next, schema.Version+1, schema.Version+1)
		if err := schema.Run(t.Context(), f.db, s.dialect(), "migrate", up); err != nil {
			t.Fatal(err)
		}
		if _, err := f.open(); !errors.Is(err, lease.ErrSchemaVersion) {
			t.Errorf("it is opened with %v", err)
		}
		if err := schema.Migrate(t.Context(), f.db, s.dialect()); !errors.Is(err, lease.ErrSchemaVersion) {
			t.Errorf("it is migrated with %v", err)
		}
	})
}
