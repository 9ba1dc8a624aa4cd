package table_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/lease"
)

// On PostgreSQL a grant is one statement, as is a refusal, whatever the number of keys; elsewhere a
// read comes first. Rows are made for keys without one, once for all.
func TestStatementsOfAny(t *testing.T) {
	want := map[string][3]int{"postgres": {3, 1, 1}, "mysql": {5, 2, 1}, "sqlite": {11, 2, 1}}
	eachAble(t, func(t *testing.T, r *rig) {
		ask := func(granted bool, n int, keys ...string) int {
			reqs := requests(keys...)
			r.log.Reset()
			answers, err := r.store.AcquireAny(t.Context(), reqs, n)
			sent := r.log.Count(faultdb.Op.Executes)
			if err != nil || len(answers) != len(keys) {
				t.Fatalf("answered %+v, %v", answers, err)
			}
			got := 0
			for i, a := range answers {
				if a.Granted {
					got++
					release(t, r.clean, lease.Lease{Key: keys[i], Owner: reqs[i].Owner})
				}
			}
			if granted && got != n || !granted && got != 0 {
				t.Fatalf("%d of %q were granted: %+v", got, keys, answers)
			}
			return sent
		}
		absent := ask(true, 1, "a", "b", "c", "d", "e", "f")
		there := ask(true, 1, "a", "b", "c", "d", "e", "f")
		some := ask(true, 3, "a", "b", "c", "d", "e", "f")
		for _, key := range []string{"a", "b", "c"} {
			hold(t, r.clean, key)
		}
		lost := ask(false, 1, "a", "b", "c")
		few := ask(false, 4, "a", "b", "c", "d", "e", "f")
		if row := r.row(t, "new"); row.Key != "" {
			t.Errorf("a loser made %+v", row)
		}
		t.Logf("%d statements for keys without rows, %d with rows, %d for three of them, %d for a loser",
			absent, there, some, lost)
		if w := want[r.Dialect.Name()]; w != [3]int{absent, there, lost} || few != lost {
			t.Errorf("want %v, and as many for one of too few (%d)", w, few)
		}
	})
}

// A call that was granted a key looks no further, although a reader group that has no member left
// holds another: an error of that look would hide the grant, and its key would stay locked.
func TestAGrantOfAnyIsFollowedByNoLook(t *testing.T) {
	eachAble(t, func(t *testing.T, r *rig) {
		release(t, r.clean, hold(t, r.clean, "free"))
		for _, keys := range [][]string{{"free", "readers'"}, {"readers'", "free"}} {
			r.share(t, "readers'")
			r.Exec(t, `UPDATE {rowlock_member} SET expires_at = {now} - {second}`)
			var ended atomic.Bool
			r.faults.Set(faultdb.Func(func(op faultdb.Op) faultdb.Fault {
				if ended.Load() {
					return faultdb.FailBeforeSend()
				}
				ended.Store(op.Kind == faultdb.Commit || strings.Contains(op.Query, "COMMIT"))
				return faultdb.None
			}))
			reqs := requests(keys...)
			answers, err := r.store.AcquireAny(t.Context(), reqs, 1)
			r.faults.Set(nil)
			i := slices.Index(keys, "free")
			if err != nil || !answers[i].Granted {
				t.Fatalf("%q: answered %+v, %v", keys, answers, err)
			}
			release(t, r.clean, lease.Lease{Key: "free", Owner: reqs[i].Owner})
		}
	})
}

// An expired lease whose row a fence has locked is passed over, without a wait.
func TestAnyPassesOverAFence(t *testing.T) {
	eachAble(t, func(t *testing.T, r *rig) {
		if r.Driver == "sqlite" {
			t.Skip("a transaction of the holder's holds up every write")
		}
		l := hold(t, r.clean, "a")
		release(t, r.clean, hold(t, r.clean, "b"))
		r.Expire(t, "a")
		tx, err := r.DB.BeginTx(t.Context(), nil)
		wantIs(t, err, nil)
		defer tx.Rollback()
		wantIs(t, r.clean.Fence(t.Context(), lease.InTx(tx), l), nil)
		answers, err := r.store.AcquireAny(t.Context(), requests("a", "b"), 1)
		wantIs(t, err, nil)
		if answers[0].Granted || !answers[1].Granted {
			t.Errorf("answered %+v", answers)
		}
		answers, err = r.store.AcquireAny(t.Context(), requests("a", "b"), 1)
		wantIs(t, err, nil)
		if answers[0].Granted || !answers[0].Locked || answers[1].Granted {
			t.Errorf("answered %+v, want that the first is locked", answers)
		}
	})
}

// anyOf is of a held key and two that are free.
var anyOf = deed{name: "acquire any", able: able, begin: func(c *cell) act {
	hold(c, c.clean, c.key+"/held")
	third := hold(c, c.clean, c.key+"/third")
	release(c, c.clean, third)
	last := hold(c, c.clean, c.key)
	release(c, c.clean, last)
	reqs := requests(c.key+"/held", c.key, c.key+"/third")
	var got []lease.Acquired
	return act{
		do: func(ctx context.Context) (err error) {
			got, err = c.store.AcquireAny(ctx, reqs, 1)
			return err
		},
		check: func() { c.checkAny(reqs, got, last, third) },
	}
}}

// checkAny wants the one key that is granted. A copy that comes late may be granted the third: its
// owner is Unknown, and the client releases it.
func (c *cell) checkAny(
	reqs []lease.AcquireRequest, got []lease.Acquired, last, third lease.Lease,
) {
	if got[0].Granted || !got[1].Granted || got[1].Token != last.Token+1 || got[2].Granted {
		c.Fatalf("got %+v, want the second alone", got)
	}
	for i, a := range got {
		if a.Unknown != c.doubt() {
			c.Errorf("answer %d is %+v after faults in %v", i, a, c.hits())
		}
	}
	mine := lease.Lease{Key: reqs[1].Key, Owner: reqs[1].Owner, Token: got[1].Token}
	c.arrive(false)
	c.wantHeldBy(mine)
	if release(c, c.store, mine).Gone {
		c.Errorf("%+v was gone when it was released", mine)
	}
	c.wantFree(mine.Token)
	c.ghosts(mine)
	row := c.row(c, third.Key)
	if row.Held && (c.late == nil || row.Owner != reqs[2].Owner) {
		c.Errorf("the third row is %+v, though nothing was sent late", row)
	}
	release(c, c.clean, lease.Lease{Key: third.Key, Owner: reqs[2].Owner})
	if row := c.row(c, third.Key); row.Held {
		c.Errorf("the third row is %+v after cleaning up", row)
	}
}
