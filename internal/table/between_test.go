package table_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A call reads, and then writes by what it has read. Another client may come between the two, so
// that each write asks for itself what the read has asked. Here another client comes before each
// statement of each call in turn, and the call must leave the row as that client has left it.

// meddling is what another client does to all rows.
type meddling struct {
	name, set string
	args      []any
	// bars says whether a call may not touch a row after it.
	bars func(call string) bool
}

var (
	stranger = lease.NewOwner()
	later    = "{now}" + strings.Repeat(" + {second}", 300)
)

// abandoned is an acquisition of a key whose team has no live member.
const abandoned = "take an abandoned team's key"

var meddlings = []meddling{
	{"moves the key", "home = 3", nil, func(string) bool { return true }},
	{
		"takes the key", "owner = ?, token = token + 1, expires_at = " + later,
		[]any{stranger[:]},
		func(call string) bool { return call != "force release" },
	},
	{"takes the last token", "token = ?", []any{int64(lease.MaxToken)}, grants},
	{"revives a member", "", nil, func(call string) bool { return call == abandoned }},
	{"lets the lease expire", "expires_at = {now} - {second}", nil, outlived},
	{
		"releases the lease", "owner = NULL, note = ''", nil,
		func(call string) bool { return outlived(call) || ends(call) || strings.HasPrefix(call, "share") },
	},
}

func grants(call string) bool {
	return call != "acquire again" && slices.ContainsFunc([]string{"acquire", "claim"}, func(s string) bool { return strings.HasPrefix(call, s) })
}

// outlived are the calls that extend a lease, or change it.
func outlived(call string) bool {
	return slices.Contains([]string{"renew", "renew a batch", "raise", "fence", "fence and renew", "downgrade"}, call)
}

func ends(call string) bool {
	return slices.ContainsFunc([]string{"release", "hand over", "pass", "depart"}, func(s string) bool { return strings.HasPrefix(call, s) })
}

func TestNoWriteTrustsWhatWasReadBeforeIt(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for _, strategy := range []sqlstore.Strategy{sqlstore.Update, sqlstore.Insert} {
			list := slices.Concat(acquisitions, batches)
			if strategy == sqlstore.Update {
				list = slices.Concat(list, others, queueing, held, []deed{together, anyOf, departure})
			}
			r := newRig(t, e, strategy, 1)
			for _, d := range list {
				t.Run(fmt.Sprintf("%s/%s", strategy, d.name), func(t *testing.T) {
					if d.able != nil && !d.able(t, r.clean) {
						t.Skip("the dialect cannot do it")
					}
					for _, m := range meddlings {
						if m.bars(d.name) {
							t.Run(m.name, func(t *testing.T) { r.meddle(t, d, m) })
						}
					}
				})
			}
		}
	})
}

// meddle has another client come before the call, and then before each of its statements.
func (r *rig) meddle(t *testing.T, d deed, m meddling) {
	for n, came := 0, true; came; n++ {
		for _, table := range []string{"rowlock", "rowlock_queue", "rowlock_member", "rowlock_limit"} {
			r.Exec(t, "DELETE FROM {"+table+"}")
		}
		c := &cell{TB: t, rig: r, key: fmt.Sprintf("%s/%d", d.name, keys.Add(1)), deed: d.name}
		a := d.begin(c)
		var left map[string]string
		come := func() {
			// Not Fatal: this may be a goroutine of the store's.
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			query := "UPDATE {rowlock} SET " + m.set
			if m.set == "" {
				query = "UPDATE {rowlock_member} SET expires_at = " + later
			}
			if _, err := r.DB.ExecContext(ctx, r.SQL(query), m.args...); err != nil {
				t.Errorf("before statement %d: %v", n, err)
			}
			left = r.rows(t)
			if m.set == "" { // a team that has ended by now has no member to revive
				maps.DeleteFunc(left, func(_, row string) bool { return strings.HasSuffix(row, " 0 members") })
			}
		}
		if n == 0 {
			come()
		} else {
			came = r.before(n, come)(func() { _ = a.do(t.Context()) })
			r.faults.Set(nil)
		}
		if n == 0 {
			_ = a.do(t.Context())
		}
		now := r.rows(t)
		for key, row := range left {
			if now[key] != row {
				t.Errorf("another client %s before statement %d, and the call made of\n%s\n%s", m.name, n, row, now[key])
			}
		}
	}
}

// before has f run before the n-th statement, unless what f changes may be locked then. It reports
// whether there was an n-th.
func (r *rig) before(n int, f func()) func(do func()) bool {
	count, within, open := 0, 0, false
	r.faults.Set(faultdb.Func(func(op faultdb.Op) faultdb.Fault {
		begins := op.Kind == faultdb.Begin || strings.HasPrefix(op.Query, "BEGIN")
		ends := op.Kind == faultdb.Commit || op.Kind == faultdb.Rollback || op.Query == "COMMIT" || op.Query == "ROLLBACK"
		if op.Executes() {
			count++
			// Of the first statement of a transaction, nothing of a row is locked yet.
			free := !open || r.Driver != "sqlite" && within == 0 && !ends
			if within++; count == n && free {
				f()
			}
		}
		if begins || ends {
			open, within = begins, 0
		}
		return faultdb.None
	}))
	return func(do func()) bool {
		do()
		return count >= n
	}
}

// rows are all rows as text, and how many members each has.
func (r *rig) rows(t *testing.T) map[string]string {
	t.Helper()
	found, err := r.DB.QueryContext(t.Context(), r.SQL(`SELECT r.{key}, r.home, r.owner, r.token, r.note, r.expires_at, r.acquired_at,
		(SELECT COUNT(*) FROM {rowlock_member} AS m WHERE m.{key} = r.{key} AND m.team = r.owner) FROM {rowlock} AS r`))
	if err != nil {
		t.Error(err)
		return nil
	}
	defer found.Close()
	out := make(map[string]string)
	for found.Next() {
		var key []byte
		columns := make([]any, 7)
		dest := []any{&key}
		for i := range columns {
			dest = append(dest, &columns[i])
		}
		if err := found.Scan(dest...); err != nil {
			t.Error(err)
		}
		out[string(key)] = fmt.Sprintf("%s: home %v, owner %x, token %v, note %s, %v, %v, %v members", append([]any{key}, columns...)...)
	}
	if err := found.Err(); err != nil {
		t.Error(err)
	}
	return out
}

// call is a deed of which the matrix knows nothing.
func call(name string, begin func(c *cell) func(ctx context.Context) error) deed {
	return deed{name: name, begin: func(c *cell) act { return act{do: begin(c)} }}
}

// batches acquire several keys at once.
var batches = []deed{
	call("acquire two free rows", func(c *cell) func(context.Context) error {
		reqs := requests(c.key, c.key+"/2")
		for _, r := range reqs {
			release(c, c.clean, hold(c, c.clean, r.Key))
		}
		return func(ctx context.Context) error { _, err := c.store.Acquire(ctx, reqs); return err }
	}),
	call("acquire two expired rows", func(c *cell) func(context.Context) error {
		reqs := requests(c.key, c.key+"/2")
		for _, r := range reqs {
			hold(c, c.clean, r.Key)
			c.Expire(c, r.Key)
		}
		return func(ctx context.Context) error { _, err := c.store.Acquire(ctx, reqs); return err }
	}),
}

// held are calls of a holder.
var held = []deed{
	call("release two", func(c *cell) func(context.Context) error {
		l := []lease.Lease{hold(c, c.clean, c.key), hold(c, c.clean, c.key+"/2")}
		return func(ctx context.Context) error { _, err := c.store.Release(ctx, l); return err }
	}),
	call("hand over", func(c *cell) func(context.Context) error {
		items := []lease.HandOver{{From: hold(c, c.clean, c.key), To: request(c.key)}}
		return func(ctx context.Context) error { _, err := c.store.HandOver(ctx, items); return err }
	}),
	call("hand over two", func(c *cell) func(context.Context) error {
		items := []lease.HandOver{
			{From: hold(c, c.clean, c.key), To: request(c.key)},
			{From: hold(c, c.clean, c.key+"/2"), To: request(c.key + "/2")},
		}
		return func(ctx context.Context) error { _, err := c.store.HandOver(ctx, items); return err }
	}),
	call("raise", func(c *cell) func(context.Context) error {
		l := hold(c, c.clean, c.key)
		reqs := []lease.RaiseRequest{{Lease: l, To: l.Token + 5}}
		return func(ctx context.Context) error { _, err := c.store.Raise(ctx, reqs); return err }
	}),
	withTx("fence", func(ctx context.Context, s lease.Store, tx lease.Runner, l lease.Lease) error {
		return s.(lease.Fencer).Fence(ctx, tx, l)
	}),
	withTx("fence and renew", func(ctx context.Context, s lease.Store, tx lease.Runner, l lease.Lease) error {
		return s.(lease.RenewingFencer).FenceRenew(ctx, tx, lease.RenewRequest{Lease: l, TTL: 3 * ttl})
	}),
	withTx("release in a transaction", func(ctx context.Context, s lease.Store, tx lease.Runner, l lease.Lease) error {
		return s.(lease.TxReleaser).ReleaseTx(ctx, tx, l)
	}),
	call("downgrade", func(c *cell) func(context.Context) error {
		reqs := []lease.RenewRequest{{Lease: hold(c, c.clean, c.key), TTL: ttl}}
		return func(ctx context.Context) error { _, err := c.store.Downgrade(ctx, reqs); return err }
	}),
	call(abandoned, func(c *cell) func(context.Context) error {
		c.share(c, c.key)
		c.Exec(c, `UPDATE {rowlock_member} SET expires_at = {now} - {second}`)
		return func(ctx context.Context) error { _, err := ask(ctx, c.store, request(c.key)); return err }
	}),
	sharing("share with a member", 1),
	sharing("share two with members", 2),
	call("force release", func(c *cell) func(context.Context) error {
		hold(c, c.clean, c.key)
		return func(ctx context.Context) error {
			_, err := c.store.ForceRelease(ctx, lease.ForceRequest{Key: c.key, ID: lease.NewOwner(), By: "me", Reason: "test"})
			return err
		}
	}),
}

// sharing joins the members of n keys.
func sharing(name string, n int) deed {
	return call(name, func(c *cell) func(context.Context) error {
		var reqs []lease.AcquireRequest
		for i := range n {
			l := hold(c, c.clean, fmt.Sprintf("%s/%d", c.key, i))
			made, err := c.clean.Downgrade(c.Context(), []lease.RenewRequest{{Lease: l, TTL: ttl}})
			if err != nil || made[0].Outcome != lease.Extended {
				c.Fatalf("downgrade: %+v, %v", made, err)
			}
			reqs = append(reqs, request(l.Key))
		}
		return func(ctx context.Context) error { _, err := c.store.Share(ctx, reqs); return err }
	})
}

// inTx does something with a lease in a transaction of the caller's, and commits.
func withTx(name string, f func(context.Context, lease.Store, lease.Runner, lease.Lease) error) deed {
	return call(name, func(c *cell) func(context.Context) error {
		l := hold(c, c.clean, c.key)
		return func(ctx context.Context) error {
			tx, err := c.pool.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			if err := f(ctx, c.store, lease.InTx(tx), l); err != nil {
				return err
			}
			return tx.Commit()
		}
	})
}
