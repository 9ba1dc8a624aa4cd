package held

import (
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// A run that loses locks ends with their number: it does not fail, and each counts once, though the
// renewal, its deadline and its Unlock all find out.
func TestLostLocksAreCountedAndEndNoRun(t *testing.T) {
	kinds, err := rig.Present("sqlite")
	if err != nil {
		t.Fatal(err)
	}
	d, err := rig.Open(t.Context(), kinds[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	cfg := Config{Locks: 20, Connections: 1, TTL: 4 * time.Second, Helpers: 4}
	for _, stolen := range []int{0, 3} {
		cfg.taken = func(c *crowd) error { return steal(t, d, c, stolen) }
		got, err := Many(t.Context(), d, cfg, rig.NewProgress(Steps))
		if err != nil {
			t.Fatalf("%d stolen: %v", stolen, err)
		}
		if got.Lost != stolen {
			t.Errorf("%d locks were stolen, and %d are lost", stolen, got.Lost)
		}
		if got.Renewals == 0 {
			t.Error("no renewal was seen")
		}
	}
}

// steal gives the rows of n locks to another owner, for long.
func steal(t *testing.T, d *rig.Database, c *crowd, n int) error {
	update := d.SQL("UPDATE {rowlock} SET token = token + 1, owner = ?, expires_at = {now} + {micros} WHERE {key} = ?")
	for _, l := range c.locks[:n] {
		other := []byte("another process!")
		if _, err := d.Pool.ExecContext(t.Context(), update, other, time.Hour.Microseconds(), []byte(l.Key())); err != nil {
			return err
		}
	}
	return nil
}
