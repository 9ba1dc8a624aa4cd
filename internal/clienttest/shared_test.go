package clienttest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// readers opens two clients on one store, as two processes are.
func readers(t *testing.T, cfg *rowlock.Config) (store *memstore.Store, a, b *rowlock.Client) {
	t.Helper()
	store = memstore.New()
	open := func() *rowlock.Client {
		c, err := rowlock.New(store, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	return store, open(), open()
}

func share(t *testing.T, c *rowlock.Client, key string) *rowlock.Lock {
	t.Helper()
	l, err := c.RLock(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func drop(t *testing.T, l *rowlock.Lock) {
	t.Helper()
	if err := l.Unlock(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func TestReadersShareAndAWriterWaitsForTheLast(t *testing.T) {
	for name, cfg := range map[string]*rowlock.Config{"": {}, "fair": {Fair: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, a, b := readers(t, cfg)
				first, second, third := share(t, a, "k"), share(t, a, "k"), share(t, b, "k")
				if first.Token() != second.Token() || first.Token() != third.Token() {
					t.Errorf("tokens %d, %d and %d of one reader group", first.Token(), second.Token(), third.Token())
				}
				var held *rowlock.HeldError
				if _, err := b.TryLock(t.Context(), "k"); !errors.As(err, &held) || !held.Shared {
					t.Errorf("a writer beside readers: %v", err)
				}
				got := make(chan *rowlock.Lock, 1)
				go func() {
					l, err := b.Lock(t.Context(), "k")
					if err != nil {
						t.Error(err)
					}
					got <- l
				}()
				time.Sleep(time.Minute) // renewals keep the members alive
				drop(t, first)
				drop(t, second)
				time.Sleep(time.Second)
				if len(got) > 0 {
					t.Fatal("a writer was let in beside a reader")
				}
				drop(t, third)
				l := <-got
				if l.Token() <= third.Token() {
					t.Errorf("the writer's token %d is not above the readers' %d", l.Token(), third.Token())
				}
				if _, err := a.TryRLock(t.Context(), "k"); !errors.Is(err, rowlock.ErrHeld) {
					t.Errorf("a reader beside a writer: %v", err)
				}
				drop(t, l)
				drop(t, share(t, a, "k"))
			})
		})
	}
}

func TestAWaitingWriterKeepsReadersOutForABoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := readers(t, &rowlock.Config{})
		long := share(t, a, "k")
		ctx, cancel := context.WithCancel(t.Context())
		writer := make(chan error, 1)
		go func() {
			_, err := a.Lock(ctx, "k")
			writer <- err
		}()
		time.Sleep(time.Second)
		if _, err := b.TryRLock(t.Context(), "k"); !errors.Is(err, rowlock.ErrHeld) {
			t.Fatalf("a reader was let in before a writer that waits: %v", err)
		}
		began := time.Now()
		l := share(t, b, "k")
		waited := time.Since(began)
		if waited < 8*time.Second || waited > lease.IntentRefuses {
			t.Errorf("a reader behind a waiting writer was let in after %s", waited)
		}
		drop(t, l)
		cancel()
		if err := <-writer; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		drop(t, share(t, b, "k")) // the writer's intent has gone with it
		drop(t, long)
	})
}

func TestNeitherReadersNorWritersStarve(t *testing.T) {
	for name, cfg := range map[string]*rowlock.Config{"": {}, "fair": {Fair: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, a, b := readers(t, cfg)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				var reads, writes, inside atomic.Int64
				work := func(c *rowlock.Client, shared bool) {
					for ctx.Err() == nil {
						lock, n, add := c.Lock, &writes, int64(1000)
						if shared {
							lock, n, add = c.RLock, &reads, 1
						}
						l, err := lock(ctx, "k")
						if err != nil {
							return
						}
						if now := inside.Add(add); shared && now >= 1000 || !shared && now != 1000 {
							t.Errorf("%d inside together", now)
						}
						time.Sleep(20 * time.Millisecond)
						inside.Add(-add)
						n.Add(1)
						_ = l.Unlock(ctx)
					}
				}
				for _, c := range []*rowlock.Client{a, b} {
					for range 3 {
						go work(c, true)
						go work(c, false)
					}
				}
				<-ctx.Done()
				time.Sleep(5 * time.Second)
				t.Logf("%d reads, %d writes", reads.Load(), writes.Load())
				if reads.Load() < 100 || writes.Load() < 100 {
					t.Errorf("%d reads and %d writes in two minutes", reads.Load(), writes.Load())
				}
			})
		})
	}
}

// Readers overlap for longer than an intent lives, and another of the keys is held all the time.
func TestReadersDoNotOvertakeACallForAnyKeyThatTheyHold(t *testing.T) {
	for _, fair := range []bool{false, true} {
		for _, other := range []string{"a", "z"} {
			synctest.Test(t, func(t *testing.T) {
				_, a, b := readers(t, &rowlock.Config{Fair: fair})
				held, writer := Take(t, b, other), Take(t, b, "k")
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				go func() {
					for ; ctx.Err() == nil; time.Sleep(time.Second) {
						if l, err := b.TryRLock(ctx, "k"); err == nil {
							time.AfterFunc(7*time.Second, func() { drop(t, l) })
						}
					}
				}()
				time.AfterFunc(time.Second/2, func() { // no refusal has told of readers
					if err := writer.Downgrade(ctx); err != nil {
						t.Error(err)
					}
					time.AfterFunc(7*time.Second, func() { drop(t, writer) })
				})
				synctest.Wait()
				l, err := a.LockAny(ctx, []string{other, "k"})
				if cancel(); err != nil {
					t.Errorf("fair %t, beside %q: %v", fair, other, err)
				} else {
					drop(t, l)
				}
				drop(t, held)
				time.Sleep(10 * time.Second) // for readers
			})
		}
	}
}

func TestDowngradeLetsReadersInAndKeepsTheToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := readers(t, &rowlock.Config{})
		l, err := a.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.TryRLock(t.Context(), "k"); !errors.Is(err, rowlock.ErrHeld) {
			t.Fatal(err)
		}
		for range 2 { // the second has nothing to do
			if err := l.Downgrade(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		r, err := b.TryRLock(t.Context(), "k")
		if err != nil || r.Token() != l.Token() {
			t.Fatalf("a reader beside a downgraded lock: %v", err)
		}
		time.Sleep(5 * time.Minute)
		if l.Context().Err() != nil || r.Context().Err() != nil {
			t.Error("a downgraded lock is not renewed")
		}
		drop(t, r)
		drop(t, l)
		w, err := b.TryLock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		drop(t, w)
		if err := l.Downgrade(t.Context()); !errors.Is(err, rowlock.ErrUnlocked) {
			t.Errorf("Downgrade after Unlock: %v", err)
		}
	})
}

func TestAReaderCannotBecomeAWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, _ := readers(t, &rowlock.Config{})
		l := share(t, a, "k")
		for _, opts := range [][]rowlock.Option{nil, {rowlock.Reentrant()}} {
			if _, err := a.Lock(l.Context(), "k", opts...); !errors.Is(err, rowlock.ErrUpgrade) {
				t.Errorf("Lock of a key that is shared: %v", err)
			}
		}
		if _, err := a.RLock(l.Context(), "k"); !errors.Is(err, rowlock.ErrDeadlock) {
			t.Errorf("RLock of a key that is shared: %v", err)
		}
		again, err := a.RLock(l.Context(), "k", rowlock.Reentrant())
		if err != nil {
			t.Fatal(err)
		}
		drop(t, again)
		drop(t, l)
	})
}

func TestAMemberThatExpiresIsLostAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, a, b := readers(t, &rowlock.Config{})
		l, other := share(t, a, "k"), share(t, b, "k")
		rows, err := store.Inspect(t.Context(), lease.Filter{})
		if err != nil || len(rows) != 1 || rows[0].Members != 2 {
			t.Fatalf("%+v, %v", rows, err)
		}
		store.Expire("k")
		<-l.Context().Done()
		<-other.Context().Done()
		if !errors.Is(context.Cause(l.Context()), rowlock.ErrLost) {
			t.Error(context.Cause(l.Context()))
		}
		w, err := b.TryLock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		drop(t, w)
	})
}

func TestRLockAllSharesAllOrNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, a, b := readers(t, &rowlock.Config{})
		one := share(t, b, "b")
		w, err := b.Lock(t.Context(), "c")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.TryRLockAll(t.Context(), []string{"a", "b", "c"}); !errors.Is(err, rowlock.ErrHeld) {
			t.Fatal(err)
		}
		rows, _ := store.Inspect(t.Context(), lease.Filter{Held: true})
		if len(rows) != 2 || rows[0].Members != 1 {
			t.Errorf("a call that was refused has left %+v", rows)
		}
		time.AfterFunc(time.Second, func() { _ = w.Unlock(context.Background()) })
		all, err := a.RLockAll(t.Context(), []string{"a", "b", "c"})
		if err != nil {
			t.Fatal(err)
		}
		if err := all.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		drop(t, one)
	})
}

func TestAStoreThatCannotShareIsRefused(t *testing.T) {
	c, err := rowlock.New(struct{ lease.Store }{memstore.New()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.RLock(t.Context(), "k"); !errors.Is(err, rowlock.ErrUnsupported) {
		t.Error(err)
	}
	l, err := c.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Downgrade(t.Context()); !errors.Is(err, rowlock.ErrUnsupported) {
		t.Error(err)
	}
	drop(t, l)
}
