// Package conformance runs locktest over internal/table. It is a package of its own so that it runs
// beside the other tests of internal/table: each of the two takes minutes.
package conformance_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/rowlockdb/rowlock/internal/testdb"
)

func TestMain(m *testing.M) {
	testdb.AtOnce(8)
	goleak.VerifyTestMain(m)
}
