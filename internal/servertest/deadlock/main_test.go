package deadlock

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/rowlockdb/rowlock/internal/testdb"
)

func TestMain(m *testing.M) {
	testdb.AtOnce(4) // each test starts three processes, which is work
	goleak.VerifyTestMain(m)
}
