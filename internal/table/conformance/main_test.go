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
