package table_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// eachTurner runs f on each database in which processes can queue.
func eachTurner(t *testing.T, f func(t *testing.T, e *testdb.Env)) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		if e.Dialect.Turner == nil {
			t.Skip("has no queue")
		}
		f(t, e)
	})
}

func turner(t *testing.T, e *testdb.Env) *table.Store {
	t.Helper()
	s, _, err := table.Open(t.Context(), e.Pool(t), e.Dialect,
		table.Options{Lanes: 1, Timeout: 5 * time.Second, Turns: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestTurnsOfAKeyComeOneAtATimeAndInTurn(t *testing.T) {
	const processes, each = 3, 20
	eachTurner(t, func(t *testing.T, e *testdb.Env) {
		var mu sync.Mutex
		var order []int
		within, turns := 0, [processes]int{}
		var all sync.WaitGroup
		for i := range processes {
			s := turner(t, e)
			all.Go(func() {
				wantIs(t, s.Turns(t.Context(), "key", func() bool {
					mu.Lock()
					if within++; within > 1 {
						t.Error("two have the turn")
					}
					if slices.Min(turns[:]) > 0 { // all stand in the queue
						order = append(order, i)
					}
					turns[i]++
					mu.Unlock()
					time.Sleep(time.Millisecond)
					mu.Lock()
					defer mu.Unlock()
					within--
					return slices.Min(turns[:]) < each
				}), nil)
			})
		}
		all.Wait()
		for n, i := range order[:len(order)-processes] {
			if order[n+1] == i {
				t.Fatalf("a process has two turns in a row: %v", order)
			}
		}
	})
}

func TestATurnPassesWhenItsProcessIsClosed(t *testing.T) {
	eachTurner(t, func(t *testing.T, e *testdb.Env) {
		first, second := turner(t, e), turner(t, e)
		has, ctx := make(chan struct{}), t.Context()
		ended, end := context.WithCancel(ctx)
		var all sync.WaitGroup
		all.Go(func() {
			_ = first.Turns(ctx, "key", func() bool { close(has); <-ended.Done(); return true })
		})
		<-has
		turn := make(chan struct{})
		all.Go(func() {
			wantIs(t, second.Turns(ctx, "key", func() bool { close(turn); return false }), nil)
		})
		select {
		case <-turn:
			t.Error("two have the turn")
		case <-time.After(100 * time.Millisecond):
		}
		all.Go(func() { _ = first.Close() })
		time.AfterFunc(10*time.Millisecond, end)
		select {
		case <-turn:
		case <-time.After(patience):
			t.Error("the turn is stuck")
		}
		all.Wait()
	})
}

// takesATurn fails the test if s gets no turn of key.
func takesATurn(t *testing.T, s *table.Store, key string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	wantIs(t, s.Turns(ctx, key, func() bool { return false }), nil)
}

// The server ends the session of a process that is silent within its turn, as one that was stopped.
func TestATurnPassesWhenItsProcessIsStopped(t *testing.T) {
	eachTurner(t, func(t *testing.T, e *testdb.Env) {
		stopped, other := turner(t, e), turner(t, e)
		has, goesOn := make(chan struct{}), make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() {
			err := stopped.Turns(t.Context(), "key", func() bool { close(has); <-goesOn; return true })
			if err == nil {
				t.Error("goes on although its session has ended")
			}
		})
		<-has
		wantIs(t, other.Turns(t.Context(), "key", func() bool { return false }), nil)
		close(goesOn)
		all.Wait()
		wantIs(t, stopped.Turns(t.Context(), "key", func() bool { return false }), nil)
	})
}

// Neither the client nor the server is told of it.
func TestATurnPassesWhenItsConnectionLeadsNowhere(t *testing.T) {
	eachTurner(t, func(t *testing.T, e *testdb.Env) {
		through, hole := e.BehindHole(t)
		cut, other := turner(t, through), turner(t, e)
		began := time.Now()
		err := cut.Turns(t.Context(), "key", func() bool {
			hole.Cut()
			takesATurn(t, other, "key")
			return true
		})
		if err == nil {
			t.Error("goes on although its session has ended")
		}
		t.Logf("given up after %s", time.Since(began).Round(time.Millisecond))
		takesATurn(t, cut, "key")
	})
}

// holdsTurn takes the lock of key's turns, in a session that does not end by itself.
func holdsTurn(t *testing.T, e *testdb.Env, s *table.Store, key string) (end func()) {
	t.Helper()
	conn, err := e.DB.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	session := sqlstore.NewSession(conn)
	wantIs(t, e.Dialect.Turner.AwaitTurn(t.Context(), session, s.Channel(), key, false), nil)
	return session.Discard
}

// An application may have a lock of the same name.
func TestATurnThatAStrangerKeepsIsGivenUp(t *testing.T) {
	eachTurner(t, func(t *testing.T, e *testdb.Env) {
		s := turner(t, e)
		end := holdsTurn(t, e, s, "key")
		err := s.Turns(t.Context(), "key", func() bool { t.Error("two have the turn"); return false })
		if err == nil || errors.Is(err, lease.ErrUnsupported) {
			t.Errorf("got error %v", err)
		}
		takesATurn(t, s, "other")
		end()
		takesATurn(t, s, "key")
	})
}

// Each statement may reach another session, and a lock would stay in one of them.
func TestThereAreNoTurnsBehindAPooler(t *testing.T) {
	_, pooled := behind(t)
	s := turner(t, pooled)
	none := func() bool { t.Error("has a turn"); return false }
	wantIs(t, s.Turns(t.Context(), "key", none), lease.ErrUnsupported)
}

func TestThereAreTurnsForOneKeyAtATime(t *testing.T) {
	eachTurner(t, func(t *testing.T, e *testdb.Env) {
		s := turner(t, e)
		none := func() bool { t.Error("has a turn"); return false }
		wantIs(t, s.Turns(t.Context(), "key", func() bool {
			if err := s.Turns(t.Context(), "other", none); err == nil {
				t.Error("waits for turns of two keys")
			}
			return false
		}), nil)
		wantIs(t, s.Turns(t.Context(), "other", func() bool { return false }), nil)
		without := openOn(t, e, e.Dialect, true)
		wantIs(t, without.Turns(t.Context(), "key", none), lease.ErrUnsupported)
	})
}

// To wake a process that waits for its turn would make it bid beside the one that has the turn.
func TestAProcessThatWaitsForItsTurnIsNotWoken(t *testing.T) {
	eachTurner(t, func(t *testing.T, e *testdb.Env) {
		waiting := sleepers(t, e, 1, "key")[0]
		s, process := turner(t, e), lease.NewOwner()
		wake := func() { wantIs(t, waiting.store.Wake(t.Context(), lease.NewOwner(), []string{"key"}), nil) }
		wantIs(t, s.Turns(t.Context(), "key", func() bool {
			s.Defers("key")
			wantIs(t, s.Register(t.Context(), process, []string{"key"}, ttl), nil)
			if wake(); !waiting.hears(t) {
				t.Error("all were told")
			}
			wantIs(t, waiting.store.Unregister(t.Context(), waiting.process, []string{"key"}), nil)
			wake() // for none
			wantIs(t, waiting.store.Register(t.Context(), waiting.process, []string{"key"}, ttl), nil)
			if wake(); !waiting.hears(t) {
				t.Error("all were told, when none but the one with the turn waited")
			}
			return false
		}), nil)
	})
}

// The poller registers all keys that it polls together.
func TestAProcessInTurnsForOneKeyIsWokenForAnother(t *testing.T) {
	eachTurner(t, func(t *testing.T, e *testdb.Env) {
		one := sleepers(t, e, 1, "other")[0] // registered, listening
		one.store.Defers("busy")
		wantIs(t, one.store.Register(t.Context(), one.process, []string{"busy", "other"}, ttl), nil)
		wantIs(t, one.store.Wake(t.Context(), lease.NewOwner(), []string{"other"}), nil)
		select {
		case <-one.heard:
		case <-time.After(10 * time.Second):
			t.Error("no process was woken for a key without turns")
		}
		for key, want := range map[string]int{"busy": 0, "other": 1} {
			all, err := one.store.Unturned(t.Context(), key)
			wantIs(t, err, nil)
			if len(all) != want || want == 1 && all[0] != one.process {
				t.Errorf("%q: %v wait without turns", key, all)
			}
		}
	})
}
