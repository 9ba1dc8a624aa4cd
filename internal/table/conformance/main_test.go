// Package conformance runs locktest over internal/table. It is a package of its own so that it runs
// beside the other tests of internal/table: each of the two takes minutes.
package conformance_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
