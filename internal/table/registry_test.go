package table_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

func TestNobodyWaitsAsNobody(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		s := openOn(t, e, e.Dialect, true)
		if err := s.Register(t.Context(), lease.Owner{}, "", []string{"key"}, ttl); !errors.Is(err, lease.ErrConfig) {
			t.Errorf("got %v", err)
		}
	})
}

// An operator finds the process that waits, and a wake the one that listens.
func TestARegistrationNamesItsProcess(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		s, process := openOn(t, e, e.Dialect, true), lease.NewOwner()
		for _, identity := range []string{"", "wéb-1/4711/orders"} {
			wantIs(t, s.Register(t.Context(), process, identity, []string{"key"}, ttl), nil)
			var rows int
			var note []byte
			err := e.DB.QueryRow(e.SQL(`SELECT count(*), min(note) FROM {rowlock_queue}`)).Scan(&rows, &note)
			if got, how := lease.SplitNote(string(note)); err != nil || rows != 1 || got != identity || how != "" {
				t.Errorf("%d rows, note %q, %v; want that of %q", rows, note, err, identity)
			}
		}
		err := s.Register(t.Context(), process, "two\tnames", []string{"key"}, ttl)
		wantIs(t, err, lease.ErrConfig)
	})
}

// Each process has rows of its own, but they are neighbours in the index.
func TestProcessesThatWaitForTheSameKeysDoNotStandInEachOthersWay(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		var wg sync.WaitGroup
		for range 4 {
			s, process := openOn(t, e, e.Dialect, true), lease.NewOwner()
			wg.Go(func() {
				for range 100 {
					var keys []string
					for _, i := range rand.Perm(20)[:1+rand.IntN(10)] {
						keys = append(keys, fmt.Sprint("key", i))
					}
					err := errors.Join(s.Register(t.Context(), process, "", keys, ttl), s.Unregister(t.Context(), process, keys[:len(keys)/2]))
					if e.Name == "sqlite" && errors.Is(err, lease.ErrBusy) {
						continue // a file has one writer at a time, who on a busy disk may take long
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestAReleaseSaysWhetherAnybodyElseWaits(t *testing.T) {
	e := on(t, "postgres")
	s, other := openOn(t, e, e.Dialect, true), openOn(t, e, e.Dialect, true)
	me, you, ctx := lease.NewOwner(), lease.NewOwner(), t.Context()
	want := func(when string, awaited bool) {
		t.Helper()
		if got := release(t, s, hold(t, s, "key")); got.Awaited != awaited {
			t.Errorf("%s: %+v", when, got)
		}
	}
	want("nobody waits", false)
	wantIs(t, s.Register(ctx, me, "", []string{"key"}, ttl), nil)
	want("its own process waits", false)
	wantIs(t, other.Register(ctx, you, "", []string{"key", "other"}, ttl), nil)
	want("another process waits", true)
	wantIs(t, other.Unregister(ctx, you, []string{"key"}), nil)
	want("another process no longer waits", false)
	e.Exec(t, `INSERT INTO {rowlock_queue} (key, waiter, rank, alive_until) VALUES ('key', '0123456789abcdef', 5, {now} + {second} * 60)`)
	want("a ticket waits", true)
	e.Exec(t, `UPDATE {rowlock_queue} SET alive_until = {now} - {second}`)
	want("whoever waited has died", false)
	wantIs(t, s.Register(ctx, you, "", []string{"key"}, ttl), nil)
	want("two processes use the store, and one of them waits", true)
}

// A process that never waits registers nothing. Its releases must not leave out the one that does.
func TestAReleaseOfAProcessThatNeverWaitsLeavesOutNoOther(t *testing.T) {
	e := on(t, "postgres")
	for _, said := range []bool{false, true} {
		s, never, waits := openOn(t, e, e.Dialect, true), lease.NewOwner(), lease.NewOwner()
		if said {
			s.Meet(never)
			s.Meet(waits)
		}
		wantIs(t, s.Register(t.Context(), waits, "", []string{"key"}, ttl), nil)
		if got := release(t, s, hold(t, s, "key")); got.Looked && !got.Awaited {
			t.Errorf("the store was told which processes there are: %t; a release says %+v", said, got)
		}
	}
}

func TestASweepForgetsWhoDiedWaiting(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		s := openOn(t, e, e.Dialect, true)
		wait := func(keys ...string) {
			wantIs(t, s.Register(t.Context(), lease.NewOwner(), "", keys, ttl), nil)
		}
		wait("a", "b", "c", "d", "e")
		e.Exec(t, `UPDATE {rowlock_queue} SET alive_until = {now} - {second}`)
		wait("a", "alive")
		for _, c := range []struct {
			retention time.Duration
			left      int
		}{{time.Hour, 7}, {time.Millisecond, 2}} {
			_, err := s.Sweep(t.Context(), lease.SweepOptions{Retention: c.retention, Batch: 2})
			wantIs(t, err, nil)
			var left int
			wantIs(t, e.DB.QueryRowContext(t.Context(), e.SQL(`SELECT count(*) FROM {rowlock_queue}`)).Scan(&left), nil)
			if left != c.left {
				t.Errorf("%d rows are left by a sweep with retention %s, want %d", left, c.retention, c.left)
			}
		}
	})
}
