package upgrade_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/schema"
)

// reader works on tables of an earlier version, through the stores of this one.
type reader struct {
	*testing.T
	*testdb.Env
	store *table.Store
}

// onEachVersion runs f on the tables that each version has left on each kind of database, brought
// to the present version.
func onEachVersion(t *testing.T, f func(r *reader)) {
	t.Helper()
	for version := sqlstore.FirstVersion; version <= schema.Version; version++ {
		onEach(t, func(t *testing.T, e *testdb.Env) {
			load(t, e, file(version, e.Name))
			if version == schema.Version {
				listing(t, e).Match(t, "../../testdata/wire/rows."+e.Name+".txt")
			}
			if err := schema.Migrate(t.Context(), e.DB, e.Dialect); err != nil {
				t.Fatal(err)
			}
			f(&reader{T: t, Env: e, store: openStore(t, e)})
		})
	}
}

func TestEveryReleasedVersionHasItsFiles(t *testing.T) {
	for version := sqlstore.FirstVersion; version <= schema.Version; version++ {
		for _, k := range testdb.Kinds {
			if _, err := os.Stat(file(version, k.Name)); err != nil {
				t.Errorf("%v: go test ./internal/upgrade -run TestDump -dump", err)
			}
		}
	}
}

func (r *reader) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *reader) wantIs(err, target error) {
	r.Helper()
	if !errors.Is(err, target) {
		r.Errorf("got error %v, want %v", err, target)
	}
}

// ask acquires a key for a new owner.
func (r *reader) ask(key string) (lease.Acquired, error) {
	r.Helper()
	got, err := r.store.Acquire(r.Context(), []lease.AcquireRequest{{Key: key, Owner: lease.NewOwner(), TTL: time.Hour}})
	return got[0], err
}

// above fails unless key is granted with a token above last.
func (r *reader) above(key string, last lease.Token) {
	r.Helper()
	if got, err := r.ask(key); err != nil || !got.Granted || got.Token <= last {
		r.Errorf("%q is answered %+v, %v, want a token above %d", key, got, err, last)
	}
}

func of(key string, token lease.Token) lease.Lease {
	return lease.Lease{Key: key, Owner: owner(key), Token: token}
}

func TestHoldersAreStillHolders(t *testing.T) {
	onEachVersion(t, func(r *reader) {
		for _, key := range []string{"held", "a ", "\x00\xff", longest, "fair"} {
			if got, err := r.ask(key); err != nil || got.Granted || got.Holder.Note != stored || got.Holder.Remaining < ever/2 {
				r.Errorf("%q is answered %+v, %v", key, got, err)
			}
		}
		l := of("held", 1)
		renewed, err := r.store.Renew(r.Context(), []lease.RenewRequest{{Lease: l, TTL: ever}})
		if err != nil || renewed[0].Outcome != lease.Extended {
			r.Errorf("a renewal is answered %+v, %v", renewed, err)
		}
		r.must(r.inTx(func(tx lease.Runner) error { return r.store.Fence(r.Context(), tx, l) }))
		r.must(r.inTx(func(tx lease.Runner) error {
			return r.store.FenceRenew(r.Context(), tx, lease.RenewRequest{Lease: l, TTL: ever})
		}))
		r.wantIs(r.inTx(func(tx lease.Runner) error { return r.store.Fence(r.Context(), tx, of("held", 2)) }), lease.ErrFenced)
		r.must(r.inTx(func(tx lease.Runner) error { return r.store.ReleaseTx(r.Context(), tx, of("a ", 1)) }))
		released, err := r.store.Release(r.Context(), []lease.Lease{l})
		if err != nil || released[0].Gone {
			r.Errorf("the release is answered %+v, %v", released, err)
		}
		r.above("held", 1)
		r.above("a ", 1)
	})
}

func (r *reader) inTx(f func(tx lease.Runner) error) error {
	r.Helper()
	tx, err := r.DB.BeginTx(r.Context(), nil)
	r.must(err)
	defer tx.Rollback()
	if err := f(lease.InTx(tx)); err != nil {
		return err
	}
	return tx.Commit()
}

func TestTokensGoOnAboveThoseBefore(t *testing.T) {
	onEachVersion(t, func(r *reader) {
		for key, last := range map[string]lease.Token{"free": 1, "a": 1, "expired": 1, "swept": 5001, "back": 2 << lease.EpochShift} {
			r.above(key, last)
		}
		renewed, err := r.store.Renew(r.Context(), []lease.RenewRequest{{Lease: of("expired", 1), TTL: ever}})
		if err != nil || renewed[0].Outcome != lease.Lost {
			r.Errorf("the renewal of what has expired is answered %+v, %v", renewed, err)
		}
		_, err = r.ask("spent")
		r.wantIs(err, lease.ErrTokenExhausted)
	})
}

func TestKeysStayWhereTheyHaveMoved(t *testing.T) {
	onEachVersion(t, func(r *reader) {
		_, err := r.ask("moved")
		r.wantIs(err, lease.ErrMoved)
		if ok, err := r.store.Confirm(r.Context(), "moved", placement, 1); err != nil || !ok {
			r.Errorf("the move is confirmed with %v, %v", ok, err)
		}
		granted := lease.Lease{Key: "moved", Owner: lease.NewOwner(), Token: 1<<lease.EpochShift + 7}
		r.must(r.inTx(func(tx lease.Runner) error { return r.store.FenceAt(r.Context(), tx, placement, granted) }))
		if ok, err := r.store.Return(r.Context(), "moved", placement, 1); err != nil || !ok {
			r.Errorf("the return is answered %v, %v", ok, err)
		}
		r.above("moved", 2<<lease.EpochShift)
	})
}

func TestWaitersKeepTheirPlaces(t *testing.T) {
	onEachVersion(t, func(r *reader) {
		waiter := func(name string) lease.Lease { return lease.Lease{Key: "fair", Owner: owner(name)} }
		places, err := r.store.QueuePositions(r.Context(), []lease.Lease{waiter("first"), waiter("urgent"), waiter("dead")})
		r.must(err)
		if places[0].Ahead != 1 || places[1].Ahead != 0 || !places[2].Missing || places[0].Missing || places[1].Missing {
			r.Errorf("the places are %+v", places)
		}
		if n, err := r.store.Waiting(r.Context(), []string{"fair", "free"}); err != nil || n[0] != 1 || n[1] != 0 {
			r.Errorf("registered processes: %v, %v", n, err)
		}
		passed, err := r.store.Pass(r.Context(), []lease.Lease{of("fair", 1)})
		if err != nil || passed[0].To != owner("urgent") || passed[0].Token < 2 {
			r.Errorf("the lease is passed on to %+v, %v", passed, err)
		}
	})
}

func TestMembersStillShareTheirKey(t *testing.T) {
	onEachVersion(t, func(r *reader) {
		got, err := r.ask("shared")
		if err != nil || got.Granted || !got.Holder.Shared || got.Holder.Remaining < ever/2 {
			r.Errorf("an exclusive request is answered %+v, %v", got, err)
		}
		for _, name := range []string{"shared", "second"} {
			l := lease.Lease{Key: "shared", Owner: owner(name), Token: 1, Shared: true}
			renewed, err := r.store.Renew(r.Context(), []lease.RenewRequest{{Lease: l, TTL: ever}})
			if err != nil || renewed[0].Outcome != lease.Extended {
				r.Errorf("the renewal of %s is answered %+v, %v", name, renewed, err)
			}
			r.must(r.inTx(func(tx lease.Runner) error { return r.store.Fence(r.Context(), tx, l) }))
			if released, err := r.store.Release(r.Context(), []lease.Lease{l}); err != nil || released[0].Gone {
				r.Errorf("the release of %s is answered %+v, %v", name, released, err)
			}
		}
		r.above("shared", 1)
	})
}

func TestPartiesThatHaveCountedStillCount(t *testing.T) {
	onEachVersion(t, func(r *reader) {
		l, err := openLatches(r.T, r.Env).Open(r.Context(), "import", 3)
		r.must(err)
		r.must(l.CountDown(r.Context(), "shard-1"))
		if n, err := l.Count(r.Context()); err != nil || n != 2 {
			r.Errorf("%d parties lack, %v", n, err)
		}
	})
}

// One of two slots is held, by a number above the limit.
func TestHeldSlotsStillCount(t *testing.T) {
	onEachVersion(t, func(r *reader) {
		l := lease.Limit{Name: "semaphore/reports", Slots: 2}
		ask := func() (granted int) {
			reqs := make([]lease.AcquireRequest, l.Slots)
			for i := range reqs {
				reqs[i] = lease.AcquireRequest{Key: l.Slot(i), Owner: lease.NewOwner(), TTL: ever}
			}
			got, err := r.store.AcquireWithin(r.Context(), l, reqs, 1)
			r.must(err)
			for _, a := range got {
				if a.Granted {
					granted++
				}
			}
			return granted
		}
		if first, second := ask(), ask(); first != 1 || second != 0 {
			r.Errorf("%d and then %d slots were granted, want 1 and none", first, second)
		}
	})
}

func TestRecordsOfForcedReleasesAreRead(t *testing.T) {
	onEachVersion(t, func(r *reader) {
		all, err := r.store.ForceReleases(r.Context(), lease.ForcedFilter{Key: "taken away"})
		r.must(err)
		if len(all) != 1 || all[0].By != "ada@ops" || all[0].Raised != all[0].Lease.Token+1 ||
			all[0].Lease.Owner != owner("stuck") {
			r.Errorf("records: %+v", all)
		}
	})
}

func TestTheTraceIsRead(t *testing.T) {
	onEachVersion(t, func(r *reader) {
		all, err := r.store.ReadTrace(r.Context(), lease.TraceFilter{})
		r.must(err)
		if len(all) != 3 || all[0].Dropped != 12 || all[1].Kind != lease.EventLost ||
			all[2].Key != "traced \x00\xff" || all[2].Owner != owner("traced") || all[2].Note != "by night" ||
			all[2].Took != 3*time.Second {
			r.Errorf("the trace: %+v", all)
		}
	})
}

func TestWhatWasDoneOnceIsNotDoneAgain(t *testing.T) {
	onEachVersion(t, func(r *reader) {
		o := openOnce(r.T, r.Env)
		for _, q := range requests {
			ran := false
			got, err := o.Do(r.Context(), q.Request, func(context.Context, *sql.Tx) ([]byte, error) { ran = true; return nil, nil })
			r.must(err)
			if again := q.Key == "expired"; ran != again || got.Replayed == again || !again && string(got.Value) != string(q.result) {
				r.Errorf("%q of tenant %q is answered %+v", q.Key, q.Tenant, got)
			}
		}
		_, err := o.Do(r.Context(), once.Request{Key: "charge/7"}, func(context.Context, *sql.Tx) ([]byte, error) { return nil, nil })
		r.wantIs(err, once.ErrMismatch)
	})
}

// The holder's process is gone, and its transaction with it: the key is free, whatever its row
// says.
func TestKeysOfTransactionsAreLockedAgain(t *testing.T) {
	onEachVersion(t, func(r *reader) {
		if r.Kind.Name == "sqlite" {
			return // has no such keys
		}
		_, err := r.ask("by transaction")
		r.wantIs(err, lease.ErrMoved)
		s, err := forupdate.New(r.DB, r.Dialect)
		r.must(err)
		defer s.Close()
		got, err := s.Acquire(r.Context(), []lease.AcquireRequest{{Key: "by transaction", Owner: lease.NewOwner(), TTL: time.Hour}})
		if err != nil || !got[0].Granted || got[0].Token <= 1 {
			r.Errorf("the key is answered %+v, %v", got, err)
		}
	})
}

func TestAClientOpensAndSweepsThem(t *testing.T) {
	onEachVersion(t, func(r *reader) {
		c, err := rowlock.Open(r.DB, r.Dialect, &rowlock.Config{Reaper: rowlock.ReaperConfig{Off: true}})
		r.must(err)
		defer c.Close()
		_, err = c.TryLock(r.Context(), "held")
		var held *rowlock.HeldError
		if !errors.As(err, &held) || held.Identity != identity || held.Note != note {
			r.Errorf("the held key is refused with %v", err)
		}
		l, err := c.Lock(r.Context(), "swept")
		r.must(err)
		r.must(l.Unlock(r.Context()))
		removed, err := r.store.Sweep(r.Context(), lease.SweepOptions{Batch: 100})
		if err != nil || removed < 3 {
			r.Errorf("swept %d rows, %v", removed, err)
		}
		for _, key := range []string{"free", "expired"} {
			r.above(key, 1)
		}
		r.above("swept", l.Token())
	})
}
