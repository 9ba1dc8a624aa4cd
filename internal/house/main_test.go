package house

import (
	"testing"

	"go.uber.org/goleak"
)

// Each test goes to the repository's root, where all its paths begin. It does so itself: go test
// does not see what TestMain does, would look for the files that a test reads in this folder, and
// would repeat its last result whatever has changed.
const root = "../.."

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
