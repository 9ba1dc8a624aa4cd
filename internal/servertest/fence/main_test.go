package fence

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/rowlockdb/rowlock/internal/testdb"
)

// Tests begin side by side, but those of evict_test.go: beside the others two of them have failed on
// MariaDB, one because a transaction was evicted that the test took for younger than the bound.
func TestMain(m *testing.M) {
	testdb.AtOnce(12)
	goleak.VerifyTestMain(m)
}
