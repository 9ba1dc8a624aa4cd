package table_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/faultdb"
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
	later    = testdb.Later
)

// abandoned is an acquisition of a key whose reader group has no live member.
const abandoned = "take an abandoned reader group's key"

var meddlings = []meddling{
	{"moves the key", "placement = 3", nil, func(string) bool { return true }},
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
		for _, strategy := range []adapter.Strategy{adapter.Update, adapter.Insert} {
			list := slices.Concat(acquisitions, batches)
			if strategy == adapter.Update {
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
			if m.set == "" { // a reader group that has ended by now has no member to revive
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
		begins := begins(op)
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
	found, err := r.DB.QueryContext(t.Context(), r.SQL(`SELECT r.{key}, r.placement, r.owner, r.token, r.note, r.expires_at, r.acquired_at,
		(SELECT COUNT(*) FROM {rowlock_member} AS m WHERE m.{key} = r.{key} AND m.reader_group = r.owner) FROM {rowlock} AS r`))
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
		if r.Driver == "mysql" && strings.HasPrefix(string(key), "fence") {
			columns[5] = "granted" // its last digit says that the row was marked, and decides nothing
		}
		out[string(key)] = fmt.Sprintf("%s: placement %v, owner %x, token %v, note %s, %v, %v, %v members", append([]any{key}, columns...)...)
	}
	if err := found.Err(); err != nil {
		t.Error(err)
	}
	return out
}
