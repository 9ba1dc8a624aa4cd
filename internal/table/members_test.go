package table_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// share makes a reader group of two members on a key.
func (r *rig) share(t testing.TB, key string) (first, second lease.Lease) {
	t.Helper()
	first = hold(t, r.clean, key)
	made, err := r.clean.Downgrade(t.Context(), []lease.RenewRequest{{Lease: first, TTL: ttl}})
	if err != nil || made[0].Outcome != lease.Extended {
		t.Fatalf("downgrade: %+v, %v", made, err)
	}
	req := request(key)
	got, err := r.clean.Share(t.Context(), []lease.AcquireRequest{req})
	if err != nil || !got[0].Granted {
		t.Fatalf("share: %+v, %v", got, err)
	}
	first.Shared = true
	return first, lease.Lease{Key: key, Owner: req.Owner, Token: got[0].Token, Shared: true}
}

// members are when each member and each intent ends, by key and owner.
func (r *rig) members(t *testing.T) map[string]string {
	t.Helper()
	rows, err := r.DB.QueryContext(t.Context(), r.SQL(`SELECT {key}, owner, expires_at FROM {rowlock_member}`))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	out := make(map[string]string)
	for rows.Next() {
		var key, owner []byte
		var ends any
		if err := rows.Scan(&key, &owner, &ends); err != nil {
			t.Fatal(err)
		}
		out[fmt.Sprintf("%s %x", key, owner)] = fmt.Sprint(ends)
	}
	return out
}

// memberCalls are the calls that name members.
var memberCalls = map[string]func(ctx context.Context, r *rig, l ...lease.Lease) error{
	"renew": func(ctx context.Context, r *rig, l ...lease.Lease) error {
		var reqs []lease.RenewRequest
		for _, one := range l {
			reqs = append(reqs, lease.RenewRequest{Lease: one, TTL: 3 * ttl})
		}
		_, err := r.store.Renew(ctx, reqs)
		return err
	},
	"release": func(ctx context.Context, r *rig, l ...lease.Lease) error {
		_, err := r.store.Release(ctx, l)
		return err
	},
	"release in a transaction": func(ctx context.Context, r *rig, l ...lease.Lease) error {
		tx, err := r.pool.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		for _, one := range l {
			_ = r.store.ReleaseTx(ctx, lease.InTx(tx), one) // that it is gone, perhaps
		}
		return tx.Commit()
	},
}

// A member is named by its key, its owner and its reader group's token. A call that names another
// member, or none, changes no row of this one.
func TestACallTouchesNoMemberButItsOwn(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 2)
		for name, call := range memberCalls {
			a, _ := r.share(t, name+"/a")
			b, _ := r.share(t, name+"/b")
			wrong := func(l lease.Lease) []lease.Lease {
				token, owner := l, l
				token.Token++
				owner.Owner = lease.NewOwner()
				return []lease.Lease{token, owner}
			}
			before := r.members(t)
			for _, l := range wrong(a) {
				wantIs(t, call(t.Context(), r, l), nil)
			}
			wantIs(t, call(t.Context(), r, append(wrong(a), wrong(b)...)...), nil)
			r.wantMembers(t, name+" of no member", before)
			wantIs(t, call(t.Context(), r, a), nil)
			r.wantMembers(t, name, before, a)
			wantIs(t, call(t.Context(), r, a, b), nil)
			r.wantMembers(t, name+" of two", before, a, b)
		}
	})
}

// wantMembers sees that all members but some are as before.
func (r *rig) wantMembers(t *testing.T, after string, before map[string]string, but ...lease.Lease) {
	t.Helper()
	now := r.members(t)
	for name, ends := range before {
		named := false
		for _, l := range but {
			named = named || name == fmt.Sprintf("%s %x", l.Key, l.Owner[:])
		}
		if changed := now[name] != ends; changed != named {
			t.Errorf("%s: member %s ended at %s and now at %q", after, name, ends, now[name])
		}
	}
}

// A caller that waits exclusively has an intent for the key. Its intent does not keep an abandoned
// reader group alive.
func TestAnAbandonedGroupEndsThoughACallerIntends(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 2)
		r.share(t, "k")
		e.Exec(t, `UPDATE {rowlock_member} SET expires_at = {now} - {second}`)
		wantIs(t, r.store.Intend(t.Context(), lease.NewOwner(), []string{"k"}, time.Minute), nil)
		hold(t, r.store, "k")
	})
}

// Intents are of one caller each, and a caller that withdraws its intent takes back nothing but its
// own.
func TestAnIntentIsTakenBackAlone(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 2)
		first, second := r.share(t, "k")
		mine, other := lease.NewOwner(), lease.NewOwner()
		for _, waiter := range []lease.Owner{mine, other, first.Owner} {
			wantIs(t, r.store.Intend(t.Context(), waiter, []string{"k"}, time.Minute), nil)
		}
		for _, waiter := range []lease.Owner{mine, first.Owner} {
			wantIs(t, r.store.Intend(t.Context(), waiter, []string{"k"}, 0), nil)
		}
		now := r.members(t)
		for _, owner := range []lease.Owner{other, first.Owner, second.Owner} {
			if now[fmt.Sprintf("k %x", owner[:])] == "" {
				t.Errorf("%x is gone, and there are %v", owner[:], now)
			}
		}
		if len(now) != 3 {
			t.Errorf("there are %v, want two members and an intent", now)
		}
	})
}

// A reader group is called by its token. A downgrade by another token would make a reader group
// that no member can name.
func TestADowngradeByAnotherTokenIsLost(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 2)
		l := hold(t, r.store, "k")
		other := l
		other.Token++
		made, err := r.store.Downgrade(t.Context(), []lease.RenewRequest{{Lease: other, TTL: ttl}})
		if err != nil || made[0].Outcome != lease.Lost {
			t.Errorf("%+v, %v, want it lost", made, err)
		}
		if row := r.row(t, "k"); row.Lease != l || !row.Held {
			t.Errorf("the row is %+v", row)
		}
	})
}
