package clienttest

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

func TestAParentKeyIsTheParents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		c := Client(t, s, nil)
		a := tenant(t, c, "a", rowlock.Quota{Held: 2})
		inner := tenant(t, a, "b", rowlock.Quota{})
		for _, try := range []struct {
			in        *rowlock.Client
			key, full string
		}{{a, "k", "k"}, {a, "a/k", "a/k"}, {inner, "k", "a/k"}} {
			l, err := try.in.TryLock(t.Context(), try.key, rowlock.ParentKey())
			if err != nil {
				t.Fatal(err)
			}
			if l.Key() != try.key || !IsHeld(t, s, try.full) {
				t.Errorf("%q is locked as %q", try.full, l.Key())
			}
			own := Take(t, inner, "k/own") // keys of its own are others
			_, err = try.in.TryLock(t.Context(), "another", rowlock.ParentKey())
			wantFull(t, err, lease.QuotaError{Namespace: "a", What: "held", Limit: 2, Asked: 1})
			Unlock(t, own)
			Unlock(t, l)
		}
		_, err := c.TryLock(t.Context(), "k", rowlock.ParentKey())
		WantIs(t, "a client that is no namespace", err, rowlock.ErrConfig)
		limit := lease.Limit{Name: "n", Slots: 2}
		_, err = a.TrySlots(t.Context(), limit, 1, rowlock.ParentKey())
		WantIs(t, "slots", err, rowlock.ErrConfig)
		all, err := a.LockAll(t.Context(), []string{"y", "x"}, rowlock.ParentKey())
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(all.Keys(), " "); got != "x y" || !IsHeld(t, s, "x") {
			t.Errorf("locked together: %q", got)
		}
		if err := all.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// turns are calls that wait for parent keys, and unlock what they get after a second.
type turns struct {
	*testing.T
	served chan string
	n      int
	ends   sync.WaitGroup
}

func (q *turns) wait(who string, lock func() (interface{ Key() string }, func())) {
	q.n++
	q.ends.Go(func() {
		l, unlock := lock()
		if l != nil {
			q.served <- who
			time.Sleep(time.Second)
			unlock()
		}
	})
	synctest.Wait()
	time.Sleep(time.Millisecond)
}

func (q *turns) lock(who string, c *rowlock.Client, opts ...rowlock.Option) {
	q.wait(who, func() (interface{ Key() string }, func()) {
		l, err := c.Lock(q.Context(), "k", append(opts, rowlock.ParentKey())...)
		if err != nil {
			q.Error(err)
			return nil, nil
		}
		return l, func() { Unlock(q.T, l) }
	})
}

// any waits for k and for a key that is never released.
func (q *turns) any(who string, c *rowlock.Client) {
	q.wait(who, func() (interface{ Key() string }, func()) {
		l, err := c.LockAny(q.Context(), []string{"k", "never"}, rowlock.ParentKey())
		if err != nil {
			q.Error(err)
			return nil, nil
		}
		return l, func() { Unlock(q.T, l) }
	})
}

// all waits for a free key and then for k.
func (q *turns) all(who string, c *rowlock.Client) {
	q.wait(who, func() (interface{ Key() string }, func()) {
		l, err := c.LockAll(q.Context(), []string{"free", "k"}, rowlock.ParentKey())
		if err != nil {
			q.Error(err)
			return nil, nil
		}
		return l.Lock("k"), func() { UnlockAll(q.T, l) }
	})
}

func (q *turns) want(order string) {
	q.Helper()
	q.ends.Wait()
	var got []string
	for range q.n {
		got = append(got, <-q.served)
	}
	if got := strings.Join(got, " "); got != order {
		q.Errorf("served %s, want %s", got, order)
	}
}

// Two processes have the waiters of tenant a: one waits for k, one for any of two keys, one for two
// keys together.
func TestTenantsOfManyProcessesTakeTurns(t *testing.T) {
	Fairly(t, 3, func(t *testing.T, _ *memstore.Store, clients []*rowlock.Client) {
		var a, b, d [3]*rowlock.Client
		for i, c := range clients {
			a[i] = tenant(t, c, "a", rowlock.Quota{})
			b[i] = tenant(t, c, "b", rowlock.Quota{})
			d[i] = tenant(t, c, "d", rowlock.Quota{})
		}
		never, k := Take(t, clients[2], "never"), Take(t, clients[2], "k")
		q := &turns{T: t, served: make(chan string, 100)}
		q.lock("a1", a[0], rowlock.Priority(10))
		q.lock("a2", a[1])
		q.any("a3", a[0])
		q.all("a4", a[1])
		q.lock("a5", a[0])
		q.lock("b1", b[2], rowlock.Priority(1))
		q.any("b2", b[2])
		q.lock("b3", b[1])
		q.all("d1", d[0])
		time.Sleep(2 * TTL) // heartbeats keep the turns
		Unlock(t, k)
		q.want("a1 b1 a2 b2 a3 b3 a4 a5 d1") // d1 waits for a4's free key, and joins k's queue after it
		Unlock(t, never)
	})
}

// A tenant that has more calls than it may is refused, and others take no notice.
func TestWaitersForAParentKeyCount(t *testing.T) {
	Fairly(t, 1, func(t *testing.T, _ *memstore.Store, clients []*rowlock.Client) {
		a := tenant(t, clients[0], "a", rowlock.Quota{Waiting: 1})
		b := tenant(t, clients[0], "b", rowlock.Quota{Waiting: 1})
		k := Take(t, clients[0], "k")
		q := &turns{T: t, served: make(chan string, 100)}
		q.lock("a1", a)
		_, err := a.Lock(t.Context(), "k", rowlock.ParentKey())
		wantFull(t, err, lease.QuotaError{Namespace: "a", What: "waiting", Limit: 1, Asked: 1})
		q.lock("b1", b)
		Unlock(t, k)
		q.want("a1 b1")
	})
}
