package table_test

import (
	"fmt"
	"testing"
	"time"

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
			const atOnce = 900 * time.Millisecond // a lane waits a second for a row
			for _, r := range []lease.AcquireRequest{second.AcquireRequest, ticket(name).AcquireRequest} {
				began := time.Now()
				got, err := c.store.Claim(c.Context(), []lease.AcquireRequest{r})
				if took := time.Since(began); err != nil || got[0].Granted || took > atOnce {
					c.Errorf("%s: a claim out of turn: %+v, %v, after %v", name, got, err, took)
				}
				began = time.Now()
				if p := c.place(second); p.Ahead != 1 || time.Since(began) > atOnce {
					c.Errorf("%s: looking took %v: %+v", name, time.Since(began), p)
				}
			}
			letGo()
		}
	})
}
