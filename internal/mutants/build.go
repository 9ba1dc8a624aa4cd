package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// builder builds the tests of packages, each once.
type builder struct {
	root, folder string
	// settings are those of go build's -overlay.
	settings string

	mu    sync.Mutex
	built map[string]*binary
}

type binary struct {
	once sync.Once
	path string
	err  error
}

// newBuilder builds tests with a mutant in Go, or, if m is nil, tests for all mutants in .sql
// files.
func newBuilder(root, folder string, m *mutant) (*builder, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	settings, err := overlay(root, folder, m)
	return &builder{root: root, folder: folder, settings: settings, built: make(map[string]*binary)}, err
}

// tests returns the program of a package's tests.
func (b *builder) tests(ctx context.Context, pkg string) (string, error) {
	b.mu.Lock()
	made := b.built[pkg]
	if made == nil {
		made = &binary{}
		b.built[pkg] = made
	}
	b.mu.Unlock()
	made.once.Do(func() { made.path, made.err = b.build(ctx, pkg) })
	return made.path, made.err
}

func (b *builder) build(ctx context.Context, pkg string) (string, error) {
	out := filepath.Join(b.folder, strings.ReplaceAll(pkg, "/", "_")+".test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", b.settings, "-o", out, "./"+pkg)
	cmd.Dir = b.root
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", &buildError{fmt.Sprintf("build the tests of %s: %v\n%s", pkg, err, said)}
	}
	return out, nil
}

// buildError says that a mutant is no program.
type buildError struct{ said string }

func (e *buildError) Error() string { return e.said }
