package forupdate_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// failover is a pool that leads to another server from some moment on, or that has no connection
// for any caller.
type failover struct {
	*sql.DB
	next    atomic.Pointer[sql.DB]
	between func() // called before each connection, if there is one
}

func (f *failover) Conn(ctx context.Context) (*sql.Conn, error) {
	if f.between != nil {
		f.between()
	}
	if next := f.next.Load(); next != nil {
		return next.Conn(ctx)
	}
	return f.DB.Conn(ctx)
}

// A server that was demoted takes no locks, on any connection: that is for the caller to see, and
// not to be tried for ever.
func TestAServerThatTakesNoLocksAnyMoreIsReportedAtOnce(t *testing.T) {
	e := onPostgres(t)
	replica := *e
	replica.Source += "&default_transaction_read_only=on"
	db := &failover{DB: e.DB}
	s, err := forupdate.New(db, e.Dialect)
	ok(t, err)
	defer s.Close()
	l := hold(t, s, "held") // on the connection that stood by
	db.next.Store(replica.Pool(t))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err = s.Acquire(ctx, []lease.AcquireRequest{{Key: "k", Owner: lease.NewOwner(), TTL: ttl}})
	wantIs(t, err, lease.ErrReadOnly)
	if ctx.Err() != nil {
		t.Errorf("it was tried until the caller's context ended, after %s", patience)
	}
	if n := db.next.Load().Stats().OpenConnections; n > 0 {
		t.Errorf("%d connections that take no locks stand by for the next lock", n)
	}
	release(t, s, l)
}

// The application has used the pool up: that is trouble which passes, for Lock to wait for, and no
// deadline of the caller's.
func TestAStoreWhosePoolIsUsedUpIsBusy(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		db := e.Pool(t)
		db.SetMaxOpenConns(7)
		s := open(t, db, e, forupdate.Connections(2))
		l := hold(t, s, "held") // on the connection that stood by
		for db.Stats().InUse < 7 {
			c, err := db.Conn(t.Context())
			ok(t, err)
			defer c.Close()
		}
		_, err := s.Acquire(t.Context(), []lease.AcquireRequest{{Key: "k", Owner: lease.NewOwner(), TTL: ttl}})
		wantIs(t, err, lease.ErrBusy)
		if errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "7 of at most 7") || !strings.Contains(err.Error(), "MaxOpenConns") {
			t.Errorf("got %v, want how many are in use and what helps", err)
		}
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err = s.Acquire(short, []lease.AcquireRequest{{Key: "k", Owner: lease.NewOwner(), TTL: ttl}})
		wantIs(t, err, context.DeadlineExceeded)
		if got := renew(t, s, l, ttl); got != lease.Extended {
			t.Errorf("the renewal of a lock that is held: %s", got)
		}
		release(t, s, l)
	})
}

func TestAContextThatHasEndedSendsNothing(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		s := open(t, e.DB, e)
		l := hold(t, s, "k")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := s.Acquire(ended, []lease.AcquireRequest{{Key: "another", Owner: lease.NewOwner(), TTL: ttl}})
		wantIs(t, err, context.Canceled)
		_, err = s.Renew(ended, []lease.RenewRequest{{Lease: l, TTL: ttl}})
		wantIs(t, err, context.Canceled)
		if !strings.Contains(err.Error(), `renew "k"`) {
			t.Errorf("%q does not say what was not sent", err)
		}
		release(t, s, l)
	})
}

// An attempt that is under way when the store is closed has its connection closed too, before Close
// returns.
func TestCloseReturnsWhenEveryConnectionIsClosed(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		db := &failover{DB: e.Pool(t)}
		s := open(t, db, e)
		hold(t, s, "held") // on the connection that stood by
		connecting, goOn := make(chan struct{}), make(chan struct{})
		db.between = func() { close(connecting); <-goOn }
		asked, closed := make(chan error), make(chan struct{})
		go func() {
			_, err := s.Acquire(t.Context(), []lease.AcquireRequest{{Key: "k", Owner: lease.NewOwner(), TTL: ttl}})
			asked <- err
		}()
		<-connecting
		go func() { _ = s.Close(); close(closed) }()
		eventually(t, "the lock that was held to go", func() bool { return isFree(t, e, "held") })
		select {
		case <-closed:
			t.Error("Close returned while a connection was being made")
		case <-time.After(50 * time.Millisecond):
		}
		close(goOn)
		if err := <-asked; err == nil {
			t.Error("granted by a store that is closed")
		}
		<-closed
		if n := db.Stats().OpenConnections; n > 0 {
			t.Errorf("%d connections are left of a store that is closed", n)
		}
	})
}
