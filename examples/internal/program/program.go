// Package program is for the tests of the examples: each is built once and run as a process, as a
// user would.
package program

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rowlockdb/rowlock/internal/testdb"
)

// Main builds the program in the test's own folder, runs the tests, and exits. path is where the
// program is.
func Main(m *testing.M, path *string) {
	folder, err := os.MkdirTemp("", "rowlock-example-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	*path = filepath.Join(folder, "example.exe") // a name that every system takes
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", *path, ".").CombinedOutput()
	if err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		os.Exit(1)
	}
	status := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(status)
}

// notice looks at every folder, so that go test does not pass off the result of before as today's:
// the program is not part of the test's own binary, and go test does not see what it is built from.
// go test takes note of the folders of the examples' module alone; rowlock's packages are in the
// binary too, so that a change of theirs is seen anyway.
var notice = sync.OnceFunc(func() {
	_ = filepath.WalkDir("../..", func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == ".git" {
			return fs.SkipDir
		}
		return nil
	})
})

// Source is what a user would give as -db: nothing for SQLite.
func Source(tb testing.TB, k testdb.Kind) string {
	tb.Helper()
	notice()
	if k.Name == "sqlite" {
		return ""
	}
	return flag(k, k.DSN(tb))
}

// Fresh is the same for an empty database: for SQLite a file, which several processes can open.
func Fresh(tb testing.TB, k testdb.Kind) string {
	tb.Helper()
	notice()
	if k.Name == "sqlite" {
		return filepath.Join(tb.TempDir(), "app.db")
	}
	return flag(k, k.Fresh(tb))
}

func flag(k testdb.Kind, dsn string) string {
	if k.Driver == "mysql" {
		return "mysql://" + dsn
	}
	return dsn
}
