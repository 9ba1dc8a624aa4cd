package oncehttp_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once/oncehttp"
)

func locksOf(t *testing.T, e *testdb.Env) *rowlock.Client {
	t.Helper()
	locks, err := rowlock.Open(e.Pool(t), e.Dialect, &rowlock.Config{
		Logger: slog.New(slog.DiscardHandler), Reaper: rowlock.ReaperConfig{Off: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	return locks
}

// The lock is held while the handler works and until its writes are committed.
func TestARequestIsUnlockedWhenItIsCommitted(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		locks := locksOf(t, e)
		var refuse, none atomic.Bool
		s := newSite(t, e, &oncehttp.Config{Lock: func(ctx context.Context, _ *http.Request) (oncehttp.Lock, error) {
			switch {
			case none.Load():
				var l *rowlock.Lock
				return l, nil
			case refuse.Load():
				return nil, fmt.Errorf("%w: in the test", lease.ErrHeld)
			}
			l, err := locks.Lock(ctx, "k")
			if err != nil {
				return nil, err
			}
			return l, nil
		}})
		s.answer = func(w http.ResponseWriter, r *http.Request) {
			if n := locks.Stats().Held; n != 1 {
				t.Errorf("%d locks are held in the handler", n)
			}
			created(w, r)
		}
		s.want(s.post("key", "body"), http.StatusCreated, false)
		s.want(s.post("key", "body"), http.StatusCreated, true)
		if n := locks.Stats(); n.Acquired != 2 || n.UnlockFailed != 0 || n.Lost != 0 {
			t.Errorf("counted %+v, want two locks that were unlocked", n)
		}
		refuse.Store(true)
		s.want(s.post("another", "body"), http.StatusConflict, false)
		none.Store(true)
		s.answer = created
		s.want(s.post("another", "body"), http.StatusCreated, false)
	})
}

// A client that does not read its response keeps no key of others.
func TestARequestIsUnlockedBeforeItsResponseIsSent(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		locks := locksOf(t, e)
		s := newSite(t, e, &oncehttp.Config{Lock: func(ctx context.Context, _ *http.Request) (oncehttp.Lock, error) {
			return locks.Lock(ctx, "k")
		}})
		s.around = func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			next.ServeHTTP(writer{w, func() {
				if n := locks.Stats().Held; n != 0 {
					t.Errorf("%d locks are held while the response is sent", n)
				}
			}}, r)
		}
		s.want(s.post("key", "body"), http.StatusCreated, false)
		s.want(s.post("key", "body"), http.StatusCreated, true)
	})
}

// writer calls f before the response is sent.
type writer struct {
	http.ResponseWriter
	f func()
}

func (w writer) WriteHeader(status int) {
	w.f()
	w.ResponseWriter.WriteHeader(status)
}
