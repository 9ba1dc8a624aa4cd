package hazard

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/optimistic"
)

// Two clients of one process wait for the same row, if they are on the same tables.
func TestAChainIsFoundThroughEveryPoolOfTheTables(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		one, two := s.Client(), s.Client(func(c *rowlock.Config) { c.Strategy = rowlock.Insert })
		l := s.Take(one, "k")
		_, err := two.Lock(l.Context(), "k")
		var d *rowlock.DeadlockError
		if !errors.As(err, &d) || d.Key != "k" || d.Token != l.Token() {
			s.Errorf("%v, want ErrDeadlock of %q with token %d", err, "k", l.Token())
		}
		nested, err := two.LockAll(l.Context(), []string{"j", "k"}, rowlock.Reentrant())
		s.OK(err)
		if token := nested.Lock("k").Token(); token != l.Token() {
			s.Errorf("the nested lock has token %d, want %d", token, l.Token())
		}
		s.OK(l.Unlock(s.Context()))
		s.WantHeld(one, "k")
		s.OK(nested.Unlock(s.Context()))
		s.OK(s.Take(one, "k").Unlock(s.Context()))
	})
}

// Other tables have other keys, in the same database or in another.
func TestAChainEndsAtTheTables(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		other := &servertest.Scene{T: s.T, Env: s.Env.Kind.Open(s)}
		l := s.Take(s.Client(), "k")
		elsewhere, err := other.Client().Lock(l.Context(), "k", rowlock.Reentrant())
		s.OK(err)
		records, err := store(other).Inspect(s.Context(), lease.Filter{Keys: []string{"k"}, Held: true})
		s.OK(err)
		if len(records) != 1 {
			s.Errorf("%d locks in the other tables, want one of their own", len(records))
		}
		s.OK(elsewhere.Unlock(s.Context()))
		s.OK(l.Unlock(s.Context()))
	})
}

// Compare-and-swap works on the rows of rowlock.Open. A held transaction keeps keys of its own: to
// lock one of those through the table is refused at once, whatever the ctx.
func TestAChainThroughAnotherKindOfStore(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		ctx := s.Context()
		rows, err := optimistic.New(s.Env.Pool(s), s.Env.Dialect)
		s.OK(err)
		defer rows.Close()
		swapping, err := rowlock.New(rows, servertest.Config())
		s.OK(err)
		defer swapping.Close()
		plain := s.Client()
		l := s.Take(plain, "k")
		_, err = swapping.TryLock(l.Context(), "k")
		s.WantErr(err, rowlock.ErrDeadlock)
		s.OK(l.Unlock(ctx))
		if s.Is("sqlite") {
			return
		}
		holds, err := forupdate.New(s.Env.Pool(s), s.Env.Dialect)
		s.OK(err)
		defer holds.Close()
		holding, err := rowlock.New(holds, servertest.Config())
		s.OK(err)
		defer holding.Close()
		held := s.Take(holding, "held")
		_, err = holding.Lock(held.Context(), "held")
		s.WantErr(err, rowlock.ErrDeadlock)
		for _, ctx := range []context.Context{ctx, held.Context()} {
			_, err = plain.TryLock(ctx, "held")
			s.WantErr(err, rowlock.ErrMoved)
		}
		s.OK(held.Unlock(ctx))
		runtime.KeepAlive(l)
	})
}
