package table_test

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A statement whose caller has left may wait for a lock at the server, although its connection is
// closed. What is released after Settle stays free.
func TestSettleWaitsForWhatTheServerStillRuns(t *testing.T) {
	for _, kind := range []string{"postgres", testdb.PgBouncer.Name, "mariadb", "mysql"} {
		t.Run(kind, func(t *testing.T) {
			direct, e := byWayOf(t, kind)
			settles(t, direct, openOn(t, e, e.Dialect, false))
		})
	}
}

// MySQL cannot read information_schema.PROCESSLIST beside a statement whose text is not utf8mb3:
// Settle would take the 6 s after which the session must have ended.
func TestSettleSeesTheEndOfASessionWhateverOthersRun(t *testing.T) {
	testdb.EachOf(t, testdb.Kinds[2:], func(t *testing.T, e *testdb.Env) {
		s := openOn(t, e, e.Dialect, false)
		testdb.RunNoText(t, e.DB)
		servertest.AtOnce(t, 3*time.Second, "Settle", func() time.Duration { return settles(t, e, s) })
	})
}

// settles leaves an acquire that the server runs, and returns for how long Settle went on after the
// server could end it.
func settles(t *testing.T, direct *testdb.Env, s *table.Store) time.Duration {
	t.Helper()
	floor := begun(t, direct)
	do(t, floor, direct.SQL("UPDATE {rowlock_floor} SET floor = floor"))
	ctx, cancel := context.WithCancel(t.Context())
	left := lease.AcquireRequest{Key: crand.Text(), Owner: lease.NewOwner(), TTL: time.Hour}
	ended := make(chan error, 1)
	go func() { _, err := ask(ctx, s, left); ended <- err }()
	untilOneWaits(t, direct, func() bool { return len(ended) > 0 })
	cancel()
	wantIs(t, <-ended, lease.ErrUnknown, context.Canceled)

	released := make(chan struct{})
	go func() {
		defer close(released)
		s.Settle(t.Context())
		release(t, s, lease.Lease{Key: left.Key, Owner: left.Owner})
	}()
	select {
	case <-released: // the server may have ended the statement at once
	case <-time.After(50 * time.Millisecond):
	}
	began := time.Now()
	do(t, floor, "COMMIT")
	<-released
	took := time.Since(began)
	untilNoneWaits(t, direct)
	rows, err := s.Inspect(t.Context(), lease.Filter{Keys: []string{left.Key}})
	if err != nil || len(rows) > 0 && rows[0].Held {
		t.Errorf("the key that was released is held: %+v, %v", rows, err)
	}
	return took
}

// The caller may leave while the statement is on its way. On a busy machine, the server then runs
// it after the release, which went another way.
func TestWhatIsReleasedAfterSettleStaysFree(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		s := openOn(t, e, e.Dialect, false)
		unknown := 0
		var keys []string
		for i := range 300 {
			r := request(fmt.Sprint("key", i))
			keys = append(keys, r.Key)
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(1000))*time.Microsecond)
			_, err := ask(ctx, s, r)
			cancel()
			if errors.Is(err, lease.ErrUnknown) {
				unknown++
				s.Settle(t.Context())
			}
			release(t, s, lease.Lease{Key: r.Key, Owner: r.Owner})
		}
		rows, err := s.Inspect(t.Context(), lease.Filter{Keys: keys})
		for _, r := range rows {
			if r.Held {
				t.Errorf("%q is held: %+v", r.Key, r)
			}
		}
		if err != nil || unknown == 0 {
			t.Errorf("%d outcomes are unknown, %v", unknown, err)
		}
		t.Logf("%d of %d outcomes were unknown", unknown, len(keys))
	})
}
