package corrupt

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/optimistic"
)

// Package optimistic reads the rows of a batch after it has extended them. A bad row is answered
// with the others, as lost or extended.
func TestABadRowCostsNoOtherItsRenewalThatTakesNoRowLocks(t *testing.T) {
	looseEach(t, func(t *testing.T, e *testdb.Env) {
		b := &beside{T: t, env: e, store: storeOn(t, e)}
		store, err := optimistic.New(e.Pool(t), e.Dialect)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		for _, set := range badValues[e.Driver] {
			t.Run(set, func(t *testing.T) {
				b.T = t
				b.setup(set)
				var reqs []lease.RenewRequest
				for _, l := range b.all() {
					reqs = append(reqs, lease.RenewRequest{Lease: l, TTL: ttl})
				}
				out, err := store.Renew(t.Context(), reqs)
				if err != nil {
					t.Fatal(err)
				}
				for i, r := range reqs {
					if r.Lease != b.bad {
						b.extended(r.Key, out[i])
					} else if out[i].Err != nil { // then each lease has cost a statement of its own
						t.Errorf("renew the bad row: %v", out[i].Err)
					}
				}
			})
		}
	})
}

// The last row of each page is read even if it stays.
func TestABadRowDoesNotStopTheSweepOfRowsForTransactions(t *testing.T) {
	looseEach(t, func(t *testing.T, e *testdb.Env) {
		if e.Name == "sqlite" {
			return // it has no locks of this kind
		}
		store, err := forupdate.New(e.Pool(t), e.Dialect)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		const page = 1000
		values := make([]string, page+1)
		for i := range values {
			made := `'2020-01-01 00:00:00'`
			if i == page-1 {
				made = `NULL`
			}
			values[i] = fmt.Sprintf(`('k%04d', %s)`, i, made)
		}
		e.Exec(t, `DELETE FROM {rowlock_hold}`)
		e.Exec(t, `INSERT INTO {rowlock_hold} ({key}, made_at) VALUES `+strings.Join(values, ", "))
		if _, err := store.Sweep(t.Context(), lease.SweepOptions{Retention: time.Hour, Batch: page}); err != nil {
			t.Fatal(err)
		}
		var left int
		err = e.DB.QueryRowContext(t.Context(), e.SQL(`SELECT count(*) FROM {rowlock_hold}`)).Scan(&left)
		if err != nil || left != 1 {
			t.Errorf("%d rows are left, %v", left, err)
		}
	})
}
