package transition_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/adaptertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/transition"
)

func wantHeld(t *testing.T, locks *transition.Locks) {
	t.Helper()
	if l, err := locks.TryLock(t.Context(), "job"); !errors.Is(err, lease.ErrHeld) {
		t.Errorf("%v %v, want held", l, err)
	}
}

func notices(t *testing.T, e *testdb.Env) lease.Store {
	t.Helper()
	store, err := rowlock.OpenTable(e.Pool(t), e.Dialect, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func wantSeen(t *testing.T, e *testdb.Env, want bool) {
	t.Helper()
	r, err := transition.Remaining(t.Context(), notices(t, e), "")
	if err != nil || r.Seen != want || r.SinceBoth <= 0 {
		t.Errorf("%v %+v, want that an old process was seen: %t", err, r, want)
	}
}

// start starts a stage on PostgreSQL's advisory locks that may be refused.
func start(t *testing.T, e *testdb.Env, s transition.Stage, more func(*transition.Config)) (*transition.Locks, error) {
	t.Helper()
	if more == nil {
		more = func(*transition.Config) {}
	}
	locks, end, err := stage(t.Context(), placeOf(e), s, transition.Advisory(e.DB, placeOf(e).id), more)
	t.Cleanup(end)
	return locks, err
}

func mustStart(t *testing.T, e *testdb.Env, s transition.Stage) *transition.Locks {
	t.Helper()
	locks, err := start(t, e, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return locks
}

func wantOrder(t *testing.T, err error, says string) {
	t.Helper()
	if !errors.Is(err, transition.ErrOrder) || !strings.Contains(err.Error(), says) ||
		!strings.Contains(err.Error(), "deploy Both to every process, then New") {
		t.Errorf("%v, want the order, and %q", err, says)
	}
}

func onPostgres(t *testing.T) *testdb.Env {
	t.Helper()
	t.Parallel()
	return testdb.Servers[0].Open(t)
}

func TestNewBeforeBothIsRefused(t *testing.T) {
	e := onPostgres(t)
	_, err := start(t, e, transition.New, nil)
	wantOrder(t, err, "no process has begun with Both")
	_, err = start(t, e, transition.New, nil)
	wantOrder(t, err, "no process has begun with Both") // the first attempt is no record
	mustStart(t, e, transition.Both)
	mustStart(t, e, transition.New)
}

func TestNewWaitsUntilNoOldProcessIsSeen(t *testing.T) {
	e := onPostgres(t)
	both := mustStart(t, e, transition.Both)
	patient := func(c *transition.Config) { c.Quiet = time.Hour }
	_, err := start(t, e, transition.New, patient)
	wantOrder(t, err, "Config.Quiet is 1h")
	a, err := neighbours["pg_advisory_lock"].alone(t.Context(), placeOf(e))
	if err != nil {
		t.Fatal(err)
	}
	wantHeld(t, both)
	if err := a.unlock(); err != nil {
		t.Fatal(err)
	}
	e.Exec(t, `UPDATE {rowlock} SET expires_at = expires_at - interval '2 hours' WHERE {key} LIKE '%since both'`)
	_, err = start(t, e, transition.New, patient)
	wantOrder(t, err, "an old process was last seen ")
	e.Exec(t, `UPDATE {rowlock} SET expires_at = expires_at - interval '90 minutes' WHERE {key} LIKE '%seen'`)
	if _, err := start(t, e, transition.New, patient); err != nil {
		t.Error(err)
	}
}

// A process that came up where none should be is found when it locks.
func TestNewBesideAnOldProcessIsRefusedItsLocks(t *testing.T) {
	each(t, func(t *testing.T, e *testdb.Env, name string, n neighbour) {
		both, end1, err := stage(t.Context(), placeOf(e), transition.Both, mustOld(t, e, n), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer end1()
		now, end2, err := stage(t.Context(), placeOf(e), transition.New, mustOld(t, e, n), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer end2()
		a, err := n.alone(t.Context(), placeOf(e))
		if err != nil {
			t.Fatal(err)
		}
		_, err = now.TryLock(t.Context(), "job")
		wantOrder(t, err, `"job" is held by a process that takes the old lock alone`)
		if err := a.unlock(); err != nil {
			t.Error(err)
		}
		l, err := now.TryLock(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		wantHeld(t, both)
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		wantSeen(t, e, true)
	})
}

func TestARedisThatLosesTheKeyIsToldAndOursIsKept(t *testing.T) {
	e := onPostgres(t)
	testdb.Installed(t, "redis")
	n, p := neighbours["redislock"], placeOf(e)
	both, end, err := stage(t.Context(), p, transition.Both, mustOld(t, e, n), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	l, err := both.Lock(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	client := p.redis()
	defer client.Close()
	if client.Del(t.Context(), p.name("job")).Val() != 1 {
		t.Error("the key is not there")
	}
	adaptertest.Eventually(t, "the loss", func() bool { return l.OldLost() != nil })
	if err := l.Ours().Context().Err(); err != nil {
		t.Errorf("ours is lost: %v", err)
	}
	other, end2, err := stage(t.Context(), p, transition.Both, mustOld(t, e, n), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer end2()
	wantHeld(t, other)
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAnEndedSessionIsTold(t *testing.T) {
	e := onPostgres(t)
	l, err := mustStart(t, e, transition.Both).Lock(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	e.Exec(t, `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1
		AND (classid::bigint << 32 | objid::bigint) = ?`, placeOf(e).id("job"))
	adaptertest.Eventually(t, "the loss", func() bool { return l.OldLost() != nil })
	if err := l.Unlock(t.Context()); err != nil {
		t.Errorf("ours was kept, and Unlock says %v", err)
	}
}

func TestRemainingSaysWhatIsKnown(t *testing.T) {
	e := onPostgres(t)
	store := notices(t, e)
	says := func(want string) {
		t.Helper()
		r, err := transition.Remaining(t.Context(), store, "")
		if err != nil || !strings.Contains(r.String(), want) {
			t.Errorf("%q (%v), want %q", r, err, want)
		}
	}
	says("no process has begun with Both")
	mustStart(t, e, transition.Both)
	says("no old process was seen since Both has been there")
	if err := transition.Forget(t.Context(), store, ""); err != nil {
		t.Error(err)
	}
	says("no process has begun with Both")
}

func TestAConfigThatIsNoneIsRefused(t *testing.T) {
	e := onPostgres(t)
	for says, more := range map[string]func(*transition.Config){
		"use Both or New":    func(c *transition.Config) { c.Stage = 4 },
		"without Config.Old": func(c *transition.Config) { c.Old = nil },
		"is nil":             func(c *transition.Config) { c.Locks = nil },
		"is negative":        func(c *transition.Config) { c.Quiet = -1 },
	} {
		if _, err := start(t, e, transition.Both, more); !errors.Is(err, lease.ErrConfig) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %s", err, says)
		}
	}
}
