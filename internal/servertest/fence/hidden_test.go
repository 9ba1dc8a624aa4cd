package fence

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/standby"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/schema"
)

// Without performance_schema MySQL answers with no rows what has a row locked. That is no sign that
// nothing has: Open, the hook, the waiter's error and a forced release say what is missing.
func TestAServerThatHidesWhoHasARowLockedIsNotTakenAtItsWord(t *testing.T) {
	t.Parallel()
	db := standby.StartAlone(t, "mysql", "--performance-schema=OFF").DB
	const cure = "start the server with performance_schema = ON"
	e := &testdb.Env{Kind: testdb.Kinds[3], DB: db, Dialect: sqlstore.Of(mysql.New())}
	s := &servertest.Scene{T: t, Env: e}
	s.OK(schema.Migrate(t.Context(), db, e.Dialect))
	c, evicted, log := evictor(s, db, time.Second, false)
	if !strings.Contains(log.String(), cure) {
		t.Errorf("Open says %s", log)
	}
	expired(s, "key")
	tx, err := db.BeginTx(t.Context(), nil)
	s.OK(err)
	_, err = tx.ExecContext(t.Context(), e.SQL(`UPDATE {rowlock} SET note = note WHERE {key} = ?`), []byte("key"))
	s.OK(err)
	ctx, cancel := context.WithCancel(t.Context())
	waits := servertest.Aside(func() error { _, err := c.Lock(ctx, "key"); return err })
	told := answered(s, evicted)
	servertest.WantErr(s, told.err, rowlock.ErrUnsupported)
	cancel()
	err = <-waits
	servertest.WantErr(s, err, rowlock.ErrHeld)
	_, forced := c.ForceRelease(t.Context(), "key", rowlock.Force{Reason: "test", Evict: true})
	if forced == nil || errors.Is(forced, rowlock.ErrUnknown) {
		t.Errorf("a forced release of a locked row returned %v", forced)
	}
	for _, err := range []error{told.err, err, forced} {
		if err != nil && !strings.Contains(err.Error(), cure) {
			t.Errorf("%v does not name the cure", err)
		}
	}
	s.OK(tx.Rollback())
}
