package table_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/lease"
)

// lockAll has another transaction lock the row and the tickets, until letGo.
func (c *cell) lockAll() (letGo func()) {
	c.Helper()
	tx, err := c.DB.BeginTx(c.Context(), nil)
	if err != nil {
		c.Fatal(err)
	}
	lock := `SELECT count(*) FROM (SELECT 1 AS one FROM {%s} WHERE {key} = ? FOR UPDATE) AS d`
	if c.Driver == "sqlite" {
		lock = `UPDATE {%s} SET note = note WHERE {key} = ?`
	}
	for _, table := range []string{"rowlock", "rowlock_queue"} {
		if _, err := tx.ExecContext(c.Context(), c.SQL(fmt.Sprintf(lock, table)), []byte(c.key)); err != nil {
			c.Fatal(err)
		}
	}
	return func() { _ = tx.Rollback() }
}

// A claim that is refused locks nothing, so that it waits for no lock.
func TestAClaimThatIsRefusedWaitsForNobody(t *testing.T) {
	eachQueue(t, func(c *cell) {
		for name, end := range map[string]func(l lease.Lease){
			"held":    func(lease.Lease) {},
			"free":    func(l lease.Lease) { release(c, c.clean, l) },
			"expired": func(l lease.Lease) { c.Expire(c, l.Key) },
		} {
			c.key = name
			end(hold(c, c.clean, name))
			first, second := ticket(name), ticket(name)
			c.join(first)
			c.join(second)
			letGo := c.lockAll()
			// A pinned connection waits a second for a row.
			atOnce := func(what string, f func()) {
				servertest.AtOnce(c, 900*time.Millisecond, what, func() time.Duration {
					began := time.Now()
					f()
					return time.Since(began)
				})
			}
			for _, r := range []lease.AcquireRequest{second.AcquireRequest, ticket(name).AcquireRequest} {
				atOnce(name+": a claim out of turn", func() {
					got, err := c.store.Claim(c.Context(), []lease.AcquireRequest{r})
					if err != nil || got[0].Granted {
						c.Errorf("%s: a claim out of turn: %+v, %v", name, got, err)
					}
				})
				atOnce(name+": looking", func() {
					if p := c.place(second); p.Ahead != 1 {
						c.Errorf("%s: looking found %+v", name, p)
					}
				})
			}
			letGo()
		}
	})
}
