package table_test

import (
	"testing"

	"github.com/rowlockdb/rowlock/internal/race/bubbles"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

func TestMain(m *testing.M) {
	testdb.AtOnce(8) // of a quarter of an hour, two minutes are work
	bubbles.Main(m)
}
