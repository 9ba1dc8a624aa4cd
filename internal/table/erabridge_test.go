package table_test

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/memcluster"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// A failover has forgotten that a key is in the cluster. The first request in the new era finds
// that out before the table grants the key, which another client has in the cluster.
func TestAForgottenMoveIsFoundBeforeAnythingIsGrantedInANewEra(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 2)
		cfg := paxosbridge.Config{Every: -1, Refresh: time.Hour, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
		cluster := memcluster.New()
		first, err := paxosbridge.New(t.Context(), r.clean, cluster, &cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer first.Close()
		b, err := paxosbridge.New(t.Context(), r.store, cluster, &cfg) // it never hears of the move
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if err := first.MoveOut(t.Context(), "k", "test"); err != nil {
			t.Fatal(err)
		}
		away, err := first.Acquire(t.Context(), requests("k"))
		if err != nil || !away[0].Granted || lease.Epoch(away[0].Token) != 1 {
			t.Fatalf("got %+v, %v", away, err)
		}
		e.Exec(t, `UPDATE {rowlock} SET placement = 0, token = 1, owner = NULL WHERE {key} = ?`, []byte("k"))
		e.ForgetEras(t)
		r.recycle(t, "")
		second, err := b.Acquire(t.Context(), requests("k"))
		if err != nil || second[0].Granted {
			t.Errorf("a second was answered %+v, %v, while %+v is held in the cluster", second, err, away)
		}
		other, err := b.Acquire(t.Context(), requests("other"))
		if err != nil || !other[0].Granted || other[0].Token <= r.store.Era() {
			t.Errorf("another key was answered %+v, %v; want a grant in the new era", other, err)
		}
	})
}

// A key comes home in an epoch that is over by the database's clock, so that an era which begins
// after a failover is above it.
func TestAKeyDoesNotMoveAgainBeforeItsEpochIsOver(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 1)
		s := r.afterFailover(t, adapter.Update)
		l := hold(t, s, "k")
		_, ok, err := s.Depart(t.Context(), l, 1)
		if ok {
			t.Error("the key has departed")
		}
		wantIs(t, err, lease.ErrBusy)
		if release(t, s, l).Gone {
			t.Error("the lease is gone")
		}
	})
}
