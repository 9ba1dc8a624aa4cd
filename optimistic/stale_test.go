package optimistic_test

import (
	"testing"

	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A taker has read the row, and its write is long on its way. Whatever of the row is another by
// then, it must change nothing: each of the three that make up the version counts by itself.
func TestATakerWhoReadLongAgoChangesNothing(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		third := lease.NewOwner()
		for _, c := range []struct {
			name, set string
			args      []any
			// The last grant, after another read, is higher than the first token by this; 0: none.
			higher lease.Token
		}{
			{"the token", `token = token + 5`, nil, 6},
			{"the owner", `owner = ?`, []any{third[:]}, 1},
			{"the expiry", `expires_at = {now} + 60 * {second}`, nil, 0},
			{"none", `note = note`, nil, 1},
		} {
			gate := faultdb.NewGate()
			take := on("cas-take", faultdb.Block(gate))
			s, log := tapped(t, e, take)
			l := hold(t, s, c.name)
			e.Expire(t, c.name)
			log.Reset()
			take.On()
			got := make(chan lease.Acquired, 1)
			go func() {
				defer close(got)
				req := lease.AcquireRequest{Key: c.name, Owner: lease.NewOwner(), TTL: ttl}
				if a, err := s.Acquire(t.Context(), []lease.AcquireRequest{req}); err == nil {
					got <- a[0]
				}
			}()
			<-gate.Arrived()
			set := c.set
			if e.Driver == "mysql" && c.name == "the expiry" {
				set = `expires_at = {now} + INTERVAL 60 SECOND`
			}
			e.Exec(t, `UPDATE {rowlock} SET `+set+` WHERE {key} = ?`, append(c.args, []byte(c.name))...)
			gate.Release()
			a := <-got
			want := lease.Token(0)
			if c.higher > 0 {
				want = l.Token + c.higher
			}
			if a.Granted != (c.higher > 0) || a.Token != want {
				t.Errorf("%s changed after token %d, and the taker got %+v, want token %d", c.name, l.Token, a, want)
			}
			tries := log.Count(runs("cas-take"))
			if want := map[bool]int{true: 1, false: 2}[c.name == "none" || c.higher == 0]; tries != want {
				t.Errorf("%s changed: %d writes, want %d", c.name, tries, want)
			}
		}
	})
}
