package table_test

import (
	"slices"
	"testing"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A holder that has lost a lease and got the key again may renew both at once, in any order: the
// renewal of the one says nothing of the other.
func TestALostLeaseIsNotExtendedWithTheNextOfItsKey(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 2)
		lost := hold(t, r.clean, "k")
		release(t, r.clean, lost)
		held := hold(t, r.clean, "k")
		other := held
		other.Token = lost.Token
		for name, c := range map[string]struct {
			leases []lease.Lease
			want   []lease.RenewOutcome
		}{
			"the lost one first":       {[]lease.Lease{lost, held}, []lease.RenewOutcome{lease.Lost, lease.Extended}},
			"the lost one last":        {[]lease.Lease{held, lost}, []lease.RenewOutcome{lease.Extended, lease.Lost}},
			"another token of its":     {[]lease.Lease{held, other}, []lease.RenewOutcome{lease.Extended, lease.Lost}},
			"a lease that comes twice": {[]lease.Lease{held, held}, []lease.RenewOutcome{lease.Extended, lease.Extended}},
		} {
			if got := renewAll(t, r, c.leases); !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
	})
}

func renewAll(t *testing.T, r *rig, leases []lease.Lease) (outcomes []lease.RenewOutcome) {
	t.Helper()
	reqs := make([]lease.RenewRequest, len(leases))
	for i, l := range leases {
		reqs[i] = lease.RenewRequest{Lease: l, TTL: ttl}
	}
	renewed, err := r.clean.Renew(t.Context(), reqs)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range renewed {
		outcomes = append(outcomes, a.Outcome)
	}
	return outcomes
}

// A trigger refuses a process the only exclusive lease. Its shared ones are other keys, and live.
func TestALeaseThatIsRefusedCostsNoReaderItsOwn(t *testing.T) {
	sqlite := testdb.Kinds[0].Open(t)
	r := newRig(t, sqlite, adapter.Update, 2)
	refused := hold(t, r.clean, "refused")
	_, reader := r.share(t, "read")
	sqlite.Exec(t, `CREATE TRIGGER refuse BEFORE UPDATE ON {rowlock} WHEN OLD.key = CAST('refused' AS BLOB)
		BEGIN SELECT RAISE(ABORT, 'no'); END`)
	var reqs []lease.RenewRequest
	for _, l := range []lease.Lease{refused, reader} {
		reqs = append(reqs, lease.RenewRequest{Lease: l, TTL: ttl})
	}
	got, err := r.store.Renew(t.Context(), reqs)
	if err != nil || got[0].Err == nil || got[1].Outcome != lease.Extended {
		t.Errorf("%+v, %v; want an error and an extension", got, err)
	}
	released, err := r.store.Release(t.Context(), []lease.Lease{refused, reader})
	if err != nil || released[0].Err == nil || released[1].Err != nil || len(r.members(t)) != 1 {
		t.Errorf("%+v, %v; want an error and a release", released, err)
	}
}
