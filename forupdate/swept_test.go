package forupdate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/schema"
)

// between does something before the first row is locked, when the rows have been made.
type between struct {
	*sql.Tx
	do func()
}

func (b *between) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	b.do()
	return b.Tx.QueryContext(ctx, query, args...)
}

var _ forupdate.Tx = (*between)(nil)

// Names have a schema: a transaction that began in another one of the server locks the same rows.
func TestATransactionOfAnotherSchemaLocksTheSameKey(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		other := *e
		other.Source = e.Fresh(t)
		other.DB = other.Pool(t)
		ok(t, schema.Migrate(t.Context(), other.DB, e.Dialect))
		l := newLocker(t, e)
		for _, lock := range []func(context.Context, forupdate.Tx, ...string) error{l.Lock, l.TryLock} {
			tx := begin(t, &other)
			ok(t, lock(t.Context(), tx, "k"))
			rival := begin(t, e)
			wantIs(t, l.TryLock(t.Context(), rival, "k"), lease.ErrHeld)
			ok(t, rival.Rollback())
			ok(t, tx.Rollback())
		}
	})
}

// PostgreSQL's transactions are of one database, whose tables may have the same names.
func TestAKeyIsNotLockedInAnotherDatabase(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		if e.Name != "postgres" {
			t.Skip("a transaction is one of the whole server")
		}
		name := fmt.Sprintf("elsewhere_%d", os.Getpid())
		e.Exec(t, `CREATE DATABASE `+name+` TEMPLATE template0`)
		t.Cleanup(func() { e.Exec(t, `DROP DATABASE `+name+` WITH (FORCE)`) })
		other := *e
		u, err := url.Parse(e.Source)
		ok(t, err)
		u.Path = "/" + name
		other.Source = u.String()
		other.DB = other.Pool(t)
		ok(t, schema.Migrate(t.Context(), other.DB, e.Dialect))
		l := newLocker(t, e)
		for _, lock := range []func(context.Context, forupdate.Tx, ...string) error{l.Lock, l.TryLock} {
			tx := begin(t, &other)
			wantIs(t, lock(t.Context(), tx, "k"), lease.ErrForeignTx)
			ok(t, tx.Rollback())
		}
	})
}

// A row that a sweep removes before it could be locked has no holder.
func TestAKeyThatIsSweptAwayInTheLastMomentIsNotHeld(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		l := newLocker(t, e)
		for _, level := range levels {
			for name, lock := range map[string]func(context.Context, forupdate.Tx, ...string) error{"lock": l.Lock, "try": l.TryLock} {
				tx := beginAt(t, e, level)
				var once sync.Once
				began := time.Now()
				err := lock(t.Context(), &between{tx, func() { once.Do(func() { e.Exec(t, `DELETE FROM {rowlock_hold}`) }) }}, "a", "b")
				if took := time.Since(began); took > patience/2 {
					t.Errorf("%s at %s: after %s", name, level, took)
				}
				if e.Name == "postgres" && level == sql.LevelReadCommitted {
					ok(t, err)
					other := begin(t, e)
					wantIs(t, l.TryLock(t.Context(), other, "b"), lease.ErrHeld)
					ok(t, other.Rollback())
				} else if errors.Is(err, lease.ErrHeld) || err != nil && !errors.Is(err, lease.ErrBusy) {
					t.Errorf("%s at %s: got %v, want the lock or lease.ErrBusy", name, level, err)
				}
				ok(t, tx.Rollback())
				tx = beginAt(t, e, level)
				ok(t, lock(t.Context(), tx, "a", "b")) // the cure
				ok(t, tx.Rollback())
			}
		}
	})
}
