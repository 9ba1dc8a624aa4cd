package refusal

import (
	"errors"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// A client that was told that its releases are durable does not work on a store that relaxes them.
func TestDurableReleaseIsAskedOfTheStore(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for _, durable := range []bool{false, true} {
			table, err := rowlock.OpenTable(e.DB, e.Dialect, &rowlock.Config{DurableRelease: durable})
			if err != nil {
				t.Fatal(err)
			}
			c, err := rowlock.New(table, &rowlock.Config{DurableRelease: true})
			if err == nil {
				err = c.Close()
			}
			relaxes := !durable && e.Driver != "mysql"
			if relaxes != errors.Is(err, rowlock.ErrConfig) || !relaxes && err != nil {
				t.Errorf("a store with DurableRelease %t: %v", durable, err)
			}
			if err := table.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}
