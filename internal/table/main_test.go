package table_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/rowlockdb/rowlock/internal/testdb"
)

func TestMain(m *testing.M) {
	testdb.AtOnce(8) // of a quarter of an hour, two minutes are work
	goleak.VerifyTestMain(m)
}
