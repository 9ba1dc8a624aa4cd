package optimistic_test

import (
	"testing"

	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/locktest"
)

// The suite once more, where no statement can count on the session of the one before.
func TestConformanceBehindPgBouncer(t *testing.T) {
	testdb.PgBouncer.DSN(t) // skips, before there are tables
	direct := testdb.Kinds[1].Open(t)
	locktest.Run(t, harness(direct.Behind(t, postgres.Listen(direct.Source))))
}
