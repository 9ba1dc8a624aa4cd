package house

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// Every path in these tests begins at the repository's root.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}
