package table_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

func requests(keys ...string) []lease.AcquireRequest {
	reqs := make([]lease.AcquireRequest, len(keys))
	for i, key := range keys {
		reqs[i] = lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: ttl, Note: "test"}
	}
	return reqs
}

// eachAble runs f on the databases whose dialects can acquire several keys at once.
func eachAble(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Helper()
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 2)
		if !able(t, r.clean) {
			t.Skip("the dialect does not acquire several keys at once")
		}
		f(t, r)
	})
}

func able(tb testing.TB, s *table.Store) bool {
	tb.Helper()
	reqs := requests("able")
	_, err := s.AcquireAll(tb.Context(), reqs)
	if errors.Is(err, lease.ErrUnsupported) {
		return false
	}
	wantIs(tb, err, nil)
	release(tb, s, lease.Lease{Key: "able", Owner: reqs[0].Owner})
	return true
}

// A lease that has run out behind its holder's fence cannot be taken, and is named; the others are
// not touched.
func TestAllIsNotGrantedOverAFence(t *testing.T) {
	eachAble(t, func(t *testing.T, r *rig) {
		if r.Driver == "sqlite" {
			t.Skip("a transaction of the holder's holds up every write")
		}
		release(t, r.clean, hold(t, r.clean, "a"))
		l := hold(t, r.clean, "b")
		r.Expire(t, "b")
		tx, err := r.DB.BeginTx(t.Context(), nil)
		wantIs(t, err, nil)
		defer tx.Rollback()
		wantIs(t, r.clean.Fence(t.Context(), lease.InTx(tx), l), nil)
		answers, err := r.store.AcquireAll(t.Context(), requests("a", "b", "c"))
		wantIs(t, err, nil)
		if answers[0].Granted || !answers[0].Possible || answers[1].Possible || answers[1].Holder != (lease.Holder{}) || !answers[2].Possible {
			t.Errorf("answered %+v", answers)
		}
		if a := r.row(t, "a"); a.Held {
			t.Errorf("the row of one that was possible is %+v", a)
		}
	})
}

// Owners of an earlier try that are granted in part by now must not be kept.
func TestWhatIsLeftOfAnEarlierTryIsNotAll(t *testing.T) {
	eachAble(t, func(t *testing.T, r *rig) {
		reqs := requests("a", "b", "c")
		_, err := r.store.AcquireAll(t.Context(), reqs)
		wantIs(t, err, nil)
		release(t, r.clean, lease.Lease{Key: "b", Owner: reqs[1].Owner})
		_, err = r.store.AcquireAll(t.Context(), reqs)
		wantIs(t, err, lease.ErrUnknown)
		hold(t, r.clean, "b")
		_, err = r.store.AcquireAll(t.Context(), reqs)
		wantIs(t, err, lease.ErrUnknown)
	})
}

// Keys with rows are one statement, and a loser sends one that writes nothing; free rows are made
// for those without.
func TestStatementsOfAll(t *testing.T) {
	eachAble(t, func(t *testing.T, r *rig) {
		take := func(keys ...string) int {
			r.log.Reset()
			reqs := requests(keys...)
			if answers, err := r.store.AcquireAll(t.Context(), reqs); err != nil || !answers[0].Granted {
				t.Fatalf("answered %+v, %v", answers, err)
			}
			n := r.log.Count(faultdb.Op.Executes)
			for _, q := range reqs {
				release(t, r.clean, lease.Lease{Key: q.Key, Owner: q.Owner})
			}
			return n
		}
		absent, there := take("a", "b", "c"), take("a", "b", "c")
		hold(t, r.clean, "b")
		r.log.Reset()
		if answers, err := r.store.AcquireAll(t.Context(), requests("a", "b", "new")); err != nil || answers[0].Granted || answers[1].Possible {
			t.Errorf("answered %+v, %v", answers, err)
		}
		lost := r.log.Count(faultdb.Op.Executes)
		if row := r.row(t, "new"); row.Key != "" {
			t.Errorf("a loser made %+v", row)
		}
		t.Logf("%d statements for keys without rows, %d for keys with rows, %d for a loser", absent, there, lost)
		if r.Dialect.Name() == "postgres" && (absent != 3 || there != 1 || lost != 1) {
			t.Error("want 3, 1 and 1")
		}
	})
}

// together is of a key with a row and one without.
var together = deed{name: "acquire all", able: able, begin: func(c *cell) act {
	last := hold(c, c.clean, c.key)
	release(c, c.clean, last)
	reqs := requests(c.key+"/other", c.key)
	var got []lease.Acquired
	return act{
		do: func(ctx context.Context) (err error) {
			got, err = c.store.AcquireAll(ctx, reqs)
			return err
		},
		check: func() { c.checkAll(reqs, got, last) },
	}
}}

func (c *cell) checkAll(reqs []lease.AcquireRequest, got []lease.Acquired, last lease.Lease) {
	if !got[0].Granted || !got[1].Granted || got[1].Token != last.Token+1 {
		c.Fatalf("got %+v, want both", got)
	}
	if got[0].Unknown != c.doubt() || got[1].Unknown != c.doubt() {
		c.Errorf("answered %+v after faults in %v", got, c.hits())
	}
	other := lease.Lease{Key: reqs[0].Key, Owner: reqs[0].Owner, Token: got[0].Token}
	mine := lease.Lease{Key: reqs[1].Key, Owner: reqs[1].Owner, Token: got[1].Token}
	c.arrive(false)
	c.wantHeldBy(mine)
	if row := c.row(c, other.Key); row.Lease != other || !row.Held {
		c.Errorf("the other row is %+v, want %+v", row, other)
	}
	for _, l := range []lease.Lease{other, mine} {
		if release(c, c.store, l).Gone {
			c.Errorf("%+v was gone when it was released", l)
		}
	}
	c.wantFree(mine.Token)
	c.ghosts(mine)
	release(c, c.clean, lease.Lease{Key: other.Key, Owner: other.Owner})
	if row := c.row(c, other.Key); row.Held {
		c.Errorf("the other row is %+v after cleaning up", row)
	}
}
