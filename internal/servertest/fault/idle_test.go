package fault

import (
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// A firewall forgets connections on which nothing is sent, and tells neither side. A lock after
// such a silence is granted soon, with a known outcome, and so is a release.
func TestACallAfterALongSilenceMeetsNoConnectionThatWasCutInSilence(t *testing.T) {
	testdb.EachOf(t, testdb.Servers, func(t *testing.T, e *testdb.Env) {
		const timeout, soon, idle = 20 * time.Second, 5 * time.Second, 300 * time.Millisecond
		through, hole := e.BehindHole(t)
		pool := through.Pool(t)
		store, _, err := table.Open(t.Context(), pool, e.Dialect, table.Options{
			Connections: 3, Timeout: timeout, Idle: idle,
		})
		servertest.WantErr(t, err, nil)
		t.Cleanup(func() { servertest.WantErr(t, store.Close(), nil) })
		c, err := rowlock.New(store, servertest.LongConfig(nil))
		servertest.WantErr(t, err, nil)
		t.Cleanup(func() { servertest.WantErr(t, c.Close(), nil) })

		cut := func() {
			t.Helper()
			began := time.Now()
			servertest.Eventually(t, "one connection to be left, and to be old", func() bool {
				return pool.Stats().InUse == 1 && time.Since(began) > 2*idle
			})
			hole.Cut()
		}
		within := func(what string, call func()) {
			t.Helper()
			began := time.Now()
			call()
			if took := time.Since(began); took > soon {
				t.Errorf("the %s took %s", what, took)
			}
		}
		cut()
		var l *rowlock.Lock
		within("lock", func() { l = servertest.Locked(t)(c.TryLock(t.Context(), "key")) })
		cut()
		within("release", func() { servertest.WantErr(t, l.Unlock(t.Context()), nil) })
	})
}
