package corrupt

import (
	"context"
	"database/sql"
	"io"
	"log/slog"
	"strconv"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/doctor"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/latch"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/optimistic"
)

var ofMeta = []string{"rowlock_meta", "rowlock_meta", "rowlock_floor"}

// ofOpening are the errors with which tables are refused.
var ofOpening = []error{lease.ErrNoSchema, lease.ErrSchemaVersion, lease.ErrCorrupt, lease.ErrTokenExhausted}

// FuzzMeta writes what tables say of themselves, and opens them in every way. They are opened only
// if they have the version and an instance.
func FuzzMeta(f *testing.F) {
	seed(f)
	e := loose(f)
	db := e.Pool(f)
	quiet := slog.New(slog.DiscardHandler)
	ways := []func(context.Context) (io.Closer, error){
		func(ctx context.Context) (io.Closer, error) {
			return closer(rowlock.OpenContext(ctx, db, e.Dialect, servertest.Config()))
		},
		func(ctx context.Context) (io.Closer, error) {
			return closer(latch.NewContext(ctx, db, e.Dialect, &latch.Config{Sweep: -1, Logger: quiet}))
		},
		func(ctx context.Context) (io.Closer, error) {
			return closer(once.NewContext(ctx, db, e.Dialect, &once.Config{Reap: -1, Logger: quiet}))
		},
		func(ctx context.Context) (io.Closer, error) {
			return closer(optimistic.NewContext(ctx, db, e.Dialect))
		},
	}
	f.Fuzz(func(t *testing.T, rows, calls []byte) {
		fresh(t, e, &draw{rows}, ofMeta)
		ctx, cancel := context.WithTimeout(t.Context(), bound)
		defer cancel()
		d := &draw{calls}
		for range min(len(calls), 2) {
			n := d.next(len(ways))
			c, err := ways[n](ctx)
			if err == nil {
				err = c.Close()
				isVersion(t, e)
			}
			if err != nil && !is(err, ofOpening) {
				t.Errorf("way %d: %v", n, err)
			}
		}
		if _, err := doctor.Examine(ctx, db, e.Dialect, &doctor.Options{Only: []string{"schema"}}); err != nil {
			t.Errorf("doctor: %v", err)
		}
	})
}

// closer is nil if there is nothing to close.
func closer[C io.Closer](c C, err error) (io.Closer, error) {
	if err != nil {
		return nil, err
	}
	return c, nil
}

// isVersion fails the test if the tables are not of the version that is opened.
func isVersion(t *testing.T, e *testdb.Env) {
	var value sql.NullString
	err := e.DB.QueryRow(e.SQL(`SELECT value FROM {rowlock_meta} WHERE name = 'schema_version'`)).Scan(&value)
	if n, bad := strconv.Atoi(value.String); err != nil || bad != nil || n != sqlstore.SchemaVersion {
		t.Errorf("opened tables of version %q, %v", value.String, err)
	}
}
