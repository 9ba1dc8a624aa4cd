package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rowlockdb/rowlock/internal/house/figures"
)

// first is what a newcomer waits for: from go get to a fenced write of the README's program, with
// an empty module cache and an empty build cache. The proxy's and the machine's speed are in it.
func (r *release) first(ctx context.Context, folder string) error {
	server := os.Getenv("ROWLOCK_TEST_POSTGRES")
	if server == "" {
		fmt.Println("SKIPPED, NO FENCED WRITE: ROWLOCK_TEST_POSTGRES names no server")
		return nil
	}
	program, err := os.ReadFile(filepath.Join(r.tree, "examples", "postgres", "main.go"))
	if err != nil {
		return err
	}
	if err := application(folder); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "main.go"), program, 0o600); err != nil {
		return err
	}
	cold := *r
	cold.cache = filepath.Join(folder, "modules")
	return step("from go get to the first fenced write on PostgreSQL, all caches empty", func() error {
		build := "GOCACHE=" + filepath.Join(folder, "build")
		if _, err := cold.command(ctx, folder, "env", build, "go", "get", figures.Module+"@"+r.version); err != nil {
			return err
		}
		said, err := cold.command(ctx, folder, "env", build, "DATABASE_URL="+server, "go", "run", ".")
		if err == nil && !strings.Contains(said, "taken over") {
			err = fmt.Errorf("it says %q", said)
		}
		return err
	})
}
