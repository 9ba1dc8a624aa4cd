package table_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

func (r *rig) forceRelease(t *testing.T, key string) lease.Forced {
	t.Helper()
	f, err := r.store.ForceRelease(t.Context(), lease.ForceRequest{Key: key, By: "me", Reason: "test", ID: lease.NewOwner()})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The last token ends a key: no row may have one above it.
func TestAForcedReleaseRaisesNoTokenBeyondTheLast(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 2)
		hold(t, r.store, "k")
		e.SetToken(t, "k", lease.MaxToken-1)
		f := r.forceRelease(t, "k")
		if row := r.row(t, "k"); row.Token != lease.MaxToken-1 || row.Held || f.Raised != row.Token {
			t.Errorf("%+v, and the row is %+v", f, row)
		}
	})
}

// A forced release of a shared key ends its members. The intent of a caller that waits stays.
func TestAForcedReleaseLeavesIntents(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 2)
		_, err := r.store.Downgrade(t.Context(), []lease.RenewRequest{{Lease: hold(t, r.store, "k"), TTL: ttl}})
		wantIs(t, err, nil)
		wantIs(t, r.store.Intend(t.Context(), lease.NewOwner(), []string{"k"}, time.Minute), nil)
		r.forceRelease(t, "k")
		var intents, members int
		err = e.DB.QueryRowContext(t.Context(), e.SQL(`SELECT (SELECT COUNT(*) FROM {rowlock_member} WHERE reader_group = ?),
			(SELECT COUNT(*) FROM {rowlock_member})`), make([]byte, 16)).Scan(&intents, &members)
		if intents != 1 || members != 1 || err != nil {
			t.Errorf("%d of %d members are intents, %v; want one of one", intents, members, err)
		}
	})
}

// A clock that counts milliseconds has several in one, and a page may end between them.
func TestPagesOfForcedReleasesOfOneTime(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 2)
		want := make([]lease.Token, 7)
		for i := range want {
			hold(t, r.store, "k")
			want[len(want)-1-i] = r.forceRelease(t, "k").Raised
		}
		e.Exec(t, `UPDATE {rowlock_forced} SET at = (SELECT last FROM (SELECT MAX(at) AS last FROM {rowlock_forced}) AS r)`)
		for _, f := range []lease.ForcedFilter{{Key: "k", Limit: 3}, {Prefix: "k", Limit: 3}} {
			var got []lease.Token
			for all := make([]lease.Forced, f.Limit); len(all) == f.Limit; {
				var err error
				if all, err = r.store.ForceReleases(t.Context(), f); err != nil {
					t.Fatal(err)
				}
				for _, f.Last = range all {
					got = append(got, f.Last.Raised)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("pages of %+v raised the token to %d, want %d", f, got, want)
			}
		}
	})
}

// By is a claim. Behind it stands what the server knows the session as, whatever the claim is.
func TestAForcedReleaseRecordsTheSessionsUser(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		var want string
		if query := map[string]string{
			"pgx": `SELECT session_user`, "mysql": `SELECT CURRENT_USER()`,
		}[e.Driver]; query != "" {
			if err := e.DB.QueryRowContext(t.Context(), query).Scan(&want); err != nil || want == "" {
				t.Fatalf("the user is %q: %v", want, err)
			}
		}
		r := newRig(t, e, adapter.Update, 2)
		for _, by := range []string{"ada", "ada\troot@localhost", strings.Repeat("ä", lease.MaxIdentity/2)} {
			hold(t, r.store, "k")
			f, err := r.store.ForceRelease(t.Context(), lease.ForceRequest{Key: "k", By: by, Reason: "test", ID: lease.NewOwner()})
			if err != nil || f.By != by || f.Session != want {
				t.Errorf("%q is recorded as %q by %q (%v), want %q", by, f.By, f.Session, err, want)
			}
			all, err := r.store.ForceReleases(t.Context(), lease.ForcedFilter{Key: "k", Limit: 1})
			if err != nil || len(all) != 1 || all[0].By != by || all[0].Session != want {
				t.Errorf("%q is listed as %+v (%v)", by, all, err)
			}
		}
	})
}
