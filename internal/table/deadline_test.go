package table_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// eachLimited runs f for each server on whose connections a pinned connection can set a deadline.
func eachLimited(t *testing.T, f func(t *testing.T, name string)) {
	for _, name := range []string{"postgres", "mariadb", "mysql"} {
		t.Run(name, func(t *testing.T) { f(t, name) })
	}
}

// behindHole opens a store on a pool whose pinned connections have the deadline of the connection
// in the place of a context: on PostgreSQL one that nothing wraps, else one with mysql.Connector.
func behindHole(t *testing.T, name string, timeout time.Duration) (*rig, *testdb.Hole) {
	e := on(t, name)
	clean := openOn(t, e, e.Dialect, false)
	through, h := e.BehindHole(t)
	var pool *sql.DB
	if e.Driver == "mysql" {
		pool = through.Limited(t)
	} else {
		pool = through.Pool(t)
	}
	r := &rig{Env: e, clean: clean, pool: pool}
	r.store = r.open(t, pool, table.Options{Strategy: adapter.Update, Connections: 1, Timeout: timeout})
	return r, h
}

func TestAPinnedConnectionOfASilentServerEndsItsStatementInTime(t *testing.T) {
	eachLimited(t, func(t *testing.T, name string) {
		r, h := behindHole(t, name, 300*time.Millisecond)
		l := hold(t, r.store, "key")
		h.Cut()
		began := time.Now()
		release(t, r.store, l) // by a second try, on another connection
		if took := time.Since(began); took < 250*time.Millisecond {
			t.Errorf("the answer came after %s through a connection that leads nowhere", took)
		}
		if row := r.row(t, "key"); row.Held {
			t.Errorf("the row is %+v", row)
		}
	})
}

// sent is by when a statement has been sent on a busy machine.
const sent = time.Second

func TestACallerWhoLeavesItsStatementIsBackAtOnce(t *testing.T) {
	eachLimited(t, func(t *testing.T, name string) {
		for why, leave := range map[error]func(context.Context) (context.Context, context.CancelFunc){
			context.DeadlineExceeded: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, sent)
			},
			context.Canceled: func(ctx context.Context) (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(ctx)
				time.AfterFunc(sent, cancel)
				return ctx, cancel
			},
		} {
			t.Run(why.Error(), func(t *testing.T) {
				r, h := behindHole(t, name, time.Minute)
				hold(t, r.store, "another key")
				h.Cut()
				ctx, cancel := leave(t.Context())
				defer cancel()
				began := time.Now()
				_, err := ask(ctx, r.store, lease.AcquireRequest{Key: "key", Owner: lease.NewOwner(), TTL: ttl})
				wantIs(t, err, lease.ErrUnknown, why)
				if errors.Is(err, context.DeadlineExceeded) && errors.Is(err, context.Canceled) {
					t.Errorf("%v has two reasons", err)
				}
				if took := time.Since(began); took > sent+promptly {
					t.Errorf("it was back after %s", took)
				}
			})
		}
	})
}

// The end of a context that comes with the answer must not end the next statement, whose connection
// is the same.
func TestAContextThatEndsWithItsCallEndsNoOtherCall(t *testing.T) {
	eachLimited(t, func(t *testing.T, name string) {
		r, _ := behindHole(t, name, time.Minute)
		for i := range 60 {
			ctx, cancel := context.WithCancel(t.Context())
			left := make(chan struct{})
			go func() {
				defer close(left)
				time.Sleep(time.Duration(i) * 15 * time.Microsecond) // before, while, or after it runs
				cancel()
			}()
			_, _ = ask(ctx, r.store,
				lease.AcquireRequest{Key: "key", Owner: lease.NewOwner(), TTL: ttl})
			before := r.store.Measure().Requests
			release(t, r.store, lease.Lease{Key: "another", Owner: lease.NewOwner()})
			if tries := r.store.Measure().Requests - before; tries != 1 {
				t.Fatalf("round %d: the next call was tried %d times", i, tries)
			}
			<-left
		}
	})
}

// Everything on a connection is bounded by its deadline, also what does not go over the wire: the
// statements of a transaction.
func TestATransactionOnASilentServerEndsInTime(t *testing.T) {
	eachLimited(t, func(t *testing.T, name string) {
		r, h := behindHole(t, name, 300*time.Millisecond)
		h.Cut()
		began := time.Now()
		if _, err := r.store.Sweep(t.Context(), lease.SweepOptions{}); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < 250*time.Millisecond || took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}
