package house

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/house/figures"
)

// An example is what a reader of a package's documentation tries first, and the compiler keeps it
// true.
func TestEveryPublicPackageHasAnExample(t *testing.T) {
	t.Chdir(root)
	for path := range listImports(t) {
		if !figures.IsPublic(path) {
			continue
		}
		tests, err := filepath.Glob(filepath.Join(path, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !hasExample(t, tests) {
			t.Errorf("%s has no Example", path)
		}
	}
}

func hasExample(t *testing.T, files []string) bool {
	t.Helper()
	for _, file := range files {
		if strings.Contains(readFile(t, file), "\nfunc Example") {
			return true
		}
	}
	return false
}
