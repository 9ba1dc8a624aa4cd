package shedlock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/adaptertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/shedlock"
)

func each(t *testing.T, f func(t *testing.T, e *testdb.Env, table string)) {
	t.Helper()
	testdb.EachOf(t, testdb.Servers, func(t *testing.T, e *testdb.Env) {
		f(t, e, table(t, e, columns(e)))
	})
}

func acquire(t *testing.T, s *shedlock.Store, key string, o lease.Owner) lease.Acquired {
	t.Helper()
	list, err := s.Acquire(t.Context(), []lease.AcquireRequest{{Key: key, Owner: o, TTL: ttl, Note: "web-1/7/x\tnightly"}})
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

func wantGranted(t *testing.T, a lease.Acquired) {
	t.Helper()
	if !a.Granted || a.Err != nil || a.Token != 0 {
		t.Fatalf("%+v, want a grant without a token", a)
	}
}

func renew(t *testing.T, s *shedlock.Store, key string, o lease.Owner) lease.Renewed {
	t.Helper()
	list, err := s.Renew(t.Context(), []lease.RenewRequest{{Lease: lease.Lease{Key: key, Owner: o}, TTL: ttl}})
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

func release(t *testing.T, s *shedlock.Store, key string, o lease.Owner) lease.Released {
	t.Helper()
	list, err := s.Release(t.Context(), []lease.Lease{{Key: key, Owner: o}})
	if err != nil || list[0].Err != nil {
		t.Fatal(err, list)
	}
	return list[0]
}

func TestAKeyHasOneOwnerUntilItIsReleasedOrExpires(t *testing.T) {
	each(t, func(t *testing.T, e *testdb.Env, table string) {
		s, a, b := open(t, e, table), lease.NewOwner(), lease.NewOwner()
		wantGranted(t, acquire(t, s, "k", a))
		asked := time.Now()
		wantGranted(t, acquire(t, s, "k", a)) // a repetition
		refused := acquire(t, s, "k", b)
		least := ttl - time.Since(asked) - time.Second // ShedLock's columns may have whole seconds
		if refused.Granted || refused.Err != nil || refused.Holder.Remaining < least ||
			refused.Holder.Note != "web-1/7/x\tnightly" {
			t.Errorf("%+v, want what the holder is", refused)
		}
		if r := renew(t, s, "k", b); r.Outcome != lease.Lost || r.Err != nil {
			t.Errorf("the renewal of another: %+v", r)
		}
		if !release(t, s, "k", b).Gone {
			t.Error("another has released it")
		}
		if r := renew(t, s, "k", a); r.Outcome == lease.Lost || r.Err != nil {
			t.Errorf("the holder's renewal: %+v", r)
		}
		if release(t, s, "k", a).Gone || !release(t, s, "k", a).Gone {
			t.Error("a release is not there once")
		}
		if r := renew(t, s, "k", a); r.Outcome != lease.Lost {
			t.Errorf("a renewal has revived what was released: %+v", r)
		}
		wantGranted(t, acquire(t, s, "k", b))
		expire(t, e, table)
		if r := renew(t, s, "k", b); r.Outcome != lease.Lost {
			t.Errorf("a renewal has revived what had expired: %+v", r)
		}
		wantGranted(t, acquire(t, s, "k", a))
	})
}

// greatest(lock_until, …), as an acquisition has it, would keep the key for the rest of its lease.
func TestAMinHoldShorterThanTheLeaseEndsIt(t *testing.T) {
	each(t, func(t *testing.T, e *testdb.Env, table string) {
		s := open(t, e, table)
		l, err := client(t, s).TryLock(t.Context(), "k", rowlock.MinHold(ttl/2))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		list, err := s.Inspect(t.Context(), lease.Filter{Keys: []string{"k"}})
		if err != nil || len(list) != 1 || list[0].Remaining > ttl/2+time.Second {
			t.Errorf("%v %v, want %s of a MinHold and not %s of a lease", err, list, ttl/2, ttl)
		}
	})
}

func TestOfManyProcessesOneGetsTheKey(t *testing.T) {
	each(t, func(t *testing.T, e *testdb.Env, table string) {
		for round := range 10 {
			key := fmt.Sprint(round / 2) // a new row, and then one that has expired
			var group sync.WaitGroup
			var mu sync.Mutex
			granted := 0
			var stores []*shedlock.Store // before the first asks, whose lease would be over by then
			for range 8 {
				stores = append(stores, openOn(t, e.DB, e, table))
			}
			for _, s := range stores {
				group.Go(func() {
					list, err := s.Acquire(t.Context(), []lease.AcquireRequest{
						{Key: key, Owner: lease.NewOwner(), TTL: ttl},
					})
					mu.Lock()
					defer mu.Unlock()
					if err != nil || list[0].Err != nil {
						t.Error(err, list)
					} else if list[0].Granted {
						granted++
					}
				})
			}
			if group.Wait(); granted != 1 {
				t.Fatalf("%d of 8 processes hold the key", granted)
			}
			expire(t, e, table)
		}
	})
}

// Both have read that the key is free before either can write.
func TestOfTwoThatFoundTheKeyFreeOneGetsIt(t *testing.T) {
	t.Parallel()
	e := testdb.Kinds[1].Open(t)
	name := table(t, e, columns(e))
	s, first := open(t, e, name), lease.NewOwner()
	wantGranted(t, acquire(t, s, "k", first))
	release(t, s, "k", first)
	tx, err := e.DB.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), "SELECT FROM "+name+" FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	answers := make(chan []lease.Acquired, 2)
	for range 2 {
		go func() {
			list, err := s.Acquire(t.Context(), []lease.AcquireRequest{{Key: "k", Owner: lease.NewOwner(), TTL: ttl}})
			if err != nil {
				t.Error(err)
			}
			answers <- list
		}()
	}
	adaptertest.Eventually(t, "both to write", func() (both bool) {
		err := e.DB.QueryRow(`SELECT count(*) = 2 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE $1`,
			"UPDATE %"+name+"%").Scan(&both)
		return err == nil && both
	})
	_ = tx.Rollback()
	if a, b := (<-answers)[0], (<-answers)[0]; a.Granted == b.Granted || a.Err != nil || b.Err != nil {
		t.Errorf("%+v and %+v, want one grant", a, b)
	}
}

func warm(t *testing.T, s *shedlock.Store) lease.Owner {
	t.Helper()
	first, second := lease.NewOwner(), lease.NewOwner()
	for _, o := range []lease.Owner{first, second} {
		wantGranted(t, acquire(t, s, o.String(), o)) // inserts
		release(t, s, o.String(), o)
		wantGranted(t, acquire(t, s, o.String(), o))
	}
	wantGranted(t, acquire(t, s, "warm", first))
	return first
}

// Whichever answer is lost, the row says afterwards whose it is.
func TestALostAnswerIsResolved(t *testing.T) {
	each(t, func(t *testing.T, e *testdb.Env, table string) {
		through, hole := e.BehindHole(t)
		db, err := sql.Open(e.Driver, through.Source)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		s, direct := openOn(t, db, e, table), open(t, e, table)
		unknown := 0
		lose := func(n int, f func()) {
			release(t, s, "warm", warm(t, s)) // the connection is there, with its statements
			hole.LoseAnswer(n)
			f()
			hole.LoseAnswer(0)
		}
		for round := range 16 { // MySQL is asked twice for most statements; a new row, and then one that is there
			key, owner := fmt.Sprint(round/8), lease.NewOwner()
			lose(1+round%8, func() {
				a := acquire(t, s, key, owner)
				wantGranted(t, a)
				if a.Unknown {
					unknown++
				}
			})
			if acquire(t, direct, key, lease.NewOwner()).Granted {
				t.Errorf("%s is held twice", key)
			}
			lose(1+round%5, func() {
				if release(t, s, key, owner).Gone {
					t.Error("what was released counts as lost")
				}
			})
			if next := lease.NewOwner(); round%8 < 7 {
				wantGranted(t, acquire(t, direct, key, next))
				release(t, direct, key, next)
			}
		}
		if unknown == 0 {
			t.Error("no answer of a write was lost")
		}
	})
}

func TestWhatIsNoNameOfShedLocksIsRefused(t *testing.T) {
	each(t, func(t *testing.T, e *testdb.Env, table string) {
		s := open(t, e, table)
		for _, key := range []string{strings.Repeat("é", 65), "a\xff", "a\x00b"} {
			if a := acquire(t, s, key, lease.NewOwner()); !errors.Is(a.Err, lease.ErrInvalidKey) {
				t.Errorf("%q: %+v", key, a)
			}
		}
		wantGranted(t, acquire(t, s, strings.Repeat("é", 64), lease.NewOwner()))
		wantGranted(t, acquire(t, s, "Job", lease.NewOwner()))
		other := acquire(t, s, "job", lease.NewOwner())
		if sensitive := e.Driver == "pgx"; sensitive {
			wantGranted(t, other)
		} else if !errors.Is(other.Err, lease.ErrInvalidKey) || !strings.Contains(other.Err.Error(), `"Job"`) {
			t.Errorf("a name that the collation takes for another: %+v", other)
		}
	})
}

func TestInspectShowsBothKindsOfHolders(t *testing.T) {
	each(t, func(t *testing.T, e *testdb.Env, table string) {
		s, owner := open(t, e, table), lease.NewOwner()
		wantGranted(t, acquire(t, s, "go", owner))
		byJava(t, e, table, "java", 0)
		wantGranted(t, acquire(t, s, "gone", lease.NewOwner()))
		e.Exec(t, "UPDATE "+table+" SET lock_until = locked_at WHERE name = 'gone'")
		list, err := s.Inspect(t.Context(), lease.Filter{})
		if err != nil || len(list) != 3 {
			t.Fatal(err, list)
		}
		if r := list[0]; r.Key != "go" || r.Owner != owner || !r.Held || r.Identity() != "web-1/7/x" || r.Token != 0 {
			t.Errorf("%+v", r)
		}
		if r := list[1]; r.Held || !r.Owner.IsZero() {
			t.Errorf("%+v", r)
		}
		if r := list[2]; r.Note != "java-host" || !r.Held || r.Owner.IsZero() {
			t.Errorf("%+v", r)
		}
		for _, f := range []lease.Filter{{Held: true, Prefix: "g"}, {Keys: []string{"go", "no"}}, {Keys: []string{"go"}}, {Limit: 1}} {
			if list, err := s.Inspect(t.Context(), f); err != nil || len(list) != 1 || list[0].Key != "go" {
				t.Errorf("%+v: %v %v", f, err, list)
			}
		}
	})
}

// A row without a token cannot do what a token is for.
func TestMoreThanTheTableCanDoIsRefused(t *testing.T) {
	each(t, func(t *testing.T, e *testdb.Env, table string) {
		c := client(t, open(t, e, table))
		l, err := c.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if l.Token() != 0 {
			t.Errorf("a token, %d", l.Token())
		}
		nothing := func(context.Context, *sql.Tx) error { return nil }
		_, noReaders := c.RLock(t.Context(), "other")
		_, noForce := c.ForceRelease(t.Context(), "k", rowlock.Force{Reason: "a test"})
		_, noOrder := rowlock.New(open(t, e, table), &rowlock.Config{Fair: true})
		_, noTrace := rowlock.New(open(t, e, table), &rowlock.Config{Trace: rowlock.TraceConfig{On: true}})
		_, noSync := rowlock.New(open(t, e, table), &rowlock.Config{RequireSync: true})
		tx, err := e.DB.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		for what, err := range map[string]error{
			"DoTx": l.DoTx(t.Context(), nothing), "Fence": l.Fence(t.Context(), tx), "RLock": noReaders,
			"ForceRelease": noForce, "Fair": noOrder, "Trace": noTrace, "RequireSync": noSync,
		} {
			if !errors.Is(err, lease.ErrUnsupported) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A client learns by its next renewal that ShedLock has taken the lock.
func TestAClientThatHasLostTheLockIsTold(t *testing.T) {
	each(t, func(t *testing.T, e *testdb.Env, table string) {
		c, err := rowlock.New(open(t, e, table), &rowlock.Config{TTL: ttl, RenewEvery: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		l, err := c.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		byJava(t, e, table, "k", 0)
		<-l.Context().Done()
		if err := l.Unlock(t.Context()); !errors.Is(err, rowlock.ErrLost) {
			t.Errorf("%v", err)
		}
	})
}
