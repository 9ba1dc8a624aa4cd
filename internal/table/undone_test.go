package table_test

import (
	"context"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/era"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A release has no answer, and its repeat finds another owner. In the same era the first try has
// released the lease. After a failover the server may have forgotten the lease, and granted the key
// while its holder worked on.
func TestAReleaseWithoutAnAnswerIsUnknownIfANewEraHasGrantedTheKey(t *testing.T) {
	calls := map[string]func(context.Context, *table.Store, lease.Lease) (gone bool, err error){
		"release": func(ctx context.Context, s *table.Store, l lease.Lease) (bool, error) {
			got, err := s.Release(ctx, []lease.Lease{l})
			return got[0].Gone, err
		},
		"pass": func(ctx context.Context, s *table.Store, l lease.Lease) (bool, error) {
			got, err := s.Pass(ctx, []lease.Lease{l})
			return got[0].Gone, err
		},
	}
	onServers(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 1)
		granted := func(key string, token lease.Token) {
			other := lease.NewOwner()
			e.Exec(t, `UPDATE {rowlock} SET owner = ?, token = ? WHERE {key} = ?`, other[:], token, []byte(key))
		}
		for name, call := range calls {
			for _, c := range []struct {
				name    string
				between func(key string, l lease.Lease)
				want    error
			}{
				{"granted again", func(key string, l lease.Lease) { granted(key, l.Token+1) }, nil},
				{"failed over", func(string, lease.Lease) { e.ForgetEras(t) }, nil},
				{"failed over and granted again", func(key string, _ lease.Lease) {
					e.ForgetEras(t)
					granted(key, era.Start(time.Now())+7)
				}, lease.ErrUnknown},
			} {
				key := name + ", " + c.name
				l := hold(t, r.store, key)
				lost := false
				r.faults.Set(faultdb.Func(func(op faultdb.Op) faultdb.Fault {
					if !op.Executes() || lost {
						return faultdb.Fault{}
					}
					lost = true
					c.between(key, l)
					return faultdb.LoseReply()
				}))
				gone, err := call(t.Context(), r.store, l)
				r.faults.Set(nil)
				if wantIs(t, err, c.want); gone {
					t.Errorf("%s: the lease is told to have gone before", key)
				}
			}
		}
	})
}
