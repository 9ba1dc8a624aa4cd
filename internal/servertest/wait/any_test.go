package wait

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// slots are the keys that waiters take any of.
func slots(n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprintf("slot/%d", i))
	}
	return keys
}

// Of 64 waiters of two processes each gets one of 8 keys, no key has two holders, its tokens grow,
// and a release costs a few statements however many wait: no herd bids for it.
func TestAHerdThatWaitsForAnyKeyIsServedOneByOne(t *testing.T) {
	const waiters, keys = 64, 8
	servertest.EachMode(t, func(s *servertest.Scene, m servertest.Mode) {
		clients := []*rowlock.Client{
			s.Client(m.Set), s.ClientOn(s.Env.Pool(s), m.Set),
		}
		held := make([]*rowlock.Lock, keys)
		for i, key := range slots(keys) {
			held[i] = s.Take(clients[0], key)
		}
		var tokens [keys]atomic.Int64
		var busy [keys]atomic.Bool
		var all, standing sync.WaitGroup
		standing.Add(waiters)
		for i := range waiters {
			all.Go(func() {
				var once sync.Once
				shown := rowlock.OnWait(func(rowlock.Waiting) { once.Do(standing.Done) })
				l, err := clients[i%2].LockAny(s.Context(), slots(keys), shown)
				if err != nil {
					s.Errorf("waiter %d: %v", i, err)
					return
				}
				slot := l.Key()[len(l.Key())-1] - '0'
				if !busy[slot].CompareAndSwap(false, true) {
					s.Errorf("%q has two holders", l.Key())
				}
				if last := tokens[slot].Swap(int64(l.Token())); last >= int64(l.Token()) {
					s.Errorf("%q: token %d after %d", l.Key(), l.Token(), last)
				}
				busy[slot].Store(false)
				if err := l.Unlock(s.Context()); err != nil {
					s.Errorf("waiter %d: %v", i, err)
				}
			})
		}
		s.Within(servertest.Patience, "all to wait", standing.Wait)
		before, began := statements(clients), time.Now()
		for _, l := range held {
			s.OK(l.Unlock(s.Context()))
		}
		s.Within(3*servertest.Patience, "all to be served", all.Wait)
		each, most := float64(statements(clients)-before)/(waiters+keys), 6.0
		if m.Fair {
			most = 40 // the tickets of the other keys are taken back, and the positions polled
		}
		// Each process polls some five times a second, for as long as a machine with other work takes.
		most += 5 * time.Since(began).Seconds() * float64(len(clients)) / (waiters + keys)
		s.Logf("%.1f statements a release", each)
		if each > most {
			s.Errorf("%.1f statements a release, want at most %.0f", each, most)
		}
		l, err := clients[1].TryLockAll(s.Context(), slots(keys))
		if err != nil {
			s.Fatalf("afterwards a key is not free: %v", err)
		}
		s.OK(l.Unlock(s.Context()))
	})
}

func statements(clients []*rowlock.Client) (n int64) {
	for _, c := range clients {
		n += c.Stats().Statements
	}
	return n
}

// The holder of all keys is killed: as many waiters have a key each when the leases end.
func TestWaitersForAnyKeyOfAKilledHolderGetOneEach(t *testing.T) {
	// A shorter lease is lost by a process that gets no turn, before it is killed.
	const ttl, poll, keys = 3 * time.Second, 50 * time.Millisecond, 4
	servertest.EachMode(t, func(s *servertest.Scene, m servertest.Mode) {
		holder, pulse := s.ChildIn(m, "hold", "none", ttl), s.Pulse()
		clients := []*rowlock.Client{
			s.Client(m.Set, servertest.WithPoll(poll)),
			s.ClientOn(s.Env.Pool(s), m.Set, servertest.WithPoll(poll)),
		}
		for _, key := range slots(keys) {
			holder.Send(key)
			holder.Expect("held")
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		got, standing := make(map[string]time.Time), make(chan struct{}, 1000)
		for i := range keys {
			all.Go(func() {
				shown := rowlock.OnWait(func(rowlock.Waiting) { standing <- struct{}{} })
				l, err := clients[i%2].LockAny(s.Context(), slots(keys), shown)
				if err != nil {
					s.Errorf("waiter %d: %v", i, err)
					return
				}
				s.Cleanup(func() { _ = l.Unlock(context.WithoutCancel(s.Context())) })
				mu.Lock()
				defer mu.Unlock()
				got[l.Key()] = time.Now()
			})
		}
		for range keys {
			servertest.Await(s, servertest.Patience, standing, "a call to wait")
		}
		s.Elapse(ttl) // it renews
		mu.Lock()
		early := len(got)
		mu.Unlock()
		killed := time.Now()
		s.OK(holder.Cmd.Process.Kill())
		s.Within(servertest.Patience, "all to be served", all.Wait)
		if early > 0 || len(got) != keys {
			s.Errorf("%d keys were granted before the kill, %d in all, want none and %d", early, len(got), keys)
		}
		// A key that another waiter took is polled once more.
		limit := pulse.Allow(ttl + 2*poll + 2*waitSlack)
		for key, at := range got {
			if took := at.Sub(killed); took > limit {
				s.Errorf("%q was granted %s after the kill, want at most %s", key, took, limit)
			}
		}
	})
}
