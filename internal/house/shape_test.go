package house

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A newcomer reads the root package first. Few files are what makes that possible, and few of them
// that can only be understood together: root.cycle in budgets/budgets.txt.
const (
	mostFiles = 18
	mostTests = 12
)

func TestTheRootHasFewFiles(t *testing.T) {
	t.Chdir(root)
	all, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	tests := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return !isTest(name) })
	if n := len(all) - len(tests); n > mostFiles {
		t.Errorf("the root has %d Go files besides its tests, want at most %d: "+
			"what needs no *Client belongs in internal", n, mostFiles)
	}
	if n := len(tests); n > mostTests {
		t.Errorf("the root has %d test files, want at most %d: tests that show no newcomer "+
			"what the package does belong in internal/clienttest or internal/servertest", n, mostTests)
	}
}

func isTest(name string) bool { return strings.HasSuffix(name, "_test.go") }
