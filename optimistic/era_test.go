package optimistic_test

import (
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/era"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A failover to a replica that lagged forgets grants. Whatever state a row is in, the next token is
// above every one from before.
func TestTokensGrowThoughTheServerHasForgottenGrants(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for _, state := range []string{"absent", "free", "expired", "swept"} {
			s, key := open(t, e), "a key that is "+state
			req := lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: time.Minute}
			if state == "free" || state == "expired" {
				if got, err := s.Acquire(t.Context(), []lease.AcquireRequest{req}); err != nil || !got[0].Granted {
					t.Fatal(got, err)
				}
				e.Expire(t, key)
			}
			if state == "free" {
				e.Exec(t, `UPDATE {rowlock} SET owner = NULL WHERE {key} = ?`, []byte(key))
			}
			if state == "swept" { // its floor is above what the insert has read
				e.Exec(t, `UPDATE {rowlock_floor} SET floor = 5`)
			}
			e.ForgetEras(t)
			before := era.Start(time.Now().Add(-time.Hour))
			next := open(t, e)
			req.Owner = lease.NewOwner()
			got, err := next.Acquire(t.Context(), []lease.AcquireRequest{req})
			if err != nil || !got[0].Granted || got[0].Token <= before {
				t.Errorf("%s: got %+v, %v; want a token above %d", state, got, err, before)
			}
		}
	})
}
