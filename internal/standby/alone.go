package standby

import (
	"database/sql"
	"slices"
	"testing"

	"github.com/rowlockdb/rowlock/internal/ports"
)

// StartAlone starts a "mariadb" or "mysql" without a replica, with more options: for tests of a
// setting that a running server cannot change. The server stops with the test. StartAlone skips as
// StartReplicated does. The pool takes several statements at a time.
func StartAlone(tb testing.TB, name string, options ...string) *sql.DB {
	tb.Helper()
	s := install(tb, products[name])
	addresses, err := ports.Free(1)
	if err != nil {
		tb.Fatal(err)
	}
	own := *s.product
	own.options = slices.Concat(own.options, options)
	s.product, s.number, s.on = &own, 1, addresses[0]
	s.initialize(tb)
	s.start(tb)
	return s.open(tb)
}
