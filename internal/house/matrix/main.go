// Matrix runs the suites that a server's version could break on real servers of each version that
// a registry has, and writes what passed into docs/compatibility.md and its data file:
//
//	go run ./internal/house/matrix
//	go run ./internal/house/matrix -only 'MariaDB|PostgreSQL 13'
//
// scripts/version fetches the programs of a version, and scripts/with-servers starts them. The tests
// are compiled once. With -only the other rows stay as they are.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	only := flag.String("only", "", "run the starts that have a row whose name this expression matches")
	flag.Parse()
	if err := run(ctx, *only); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "matrix:", err)
		os.Exit(1)
	}
}

// run writes after each start, so that an interrupted run keeps what it has found.
func run(ctx context.Context, only string) error {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	built, err := os.MkdirTemp("", "rowlock-matrix-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(built)
	if err := build(ctx, built); err != nil {
		return err
	}
	t, err := read(".")
	if err != nil {
		return err
	}
	var failed []error
	for _, s := range starts {
		if !s.hasRow(wanted) {
			continue
		}
		rows, err := s.run(ctx, built)
		if err != nil {
			return fmt.Errorf("%s: %w", s.rows[0].name, err)
		}
		for _, r := range rows {
			failed = append(failed, r.failures()...)
		}
		t.put(rows)
		if err := t.write("."); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

// place is a file of the repository, seen from its root.
func place(root, file string) string { return filepath.Join(root, filepath.FromSlash(file)) }
