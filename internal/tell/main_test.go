package tell_test

import (
	"testing"

	"github.com/rowlockdb/rowlock/internal/race/bubbles"
)

func TestMain(m *testing.M) { bubbles.Main(m) }
