package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// runner tries mutants.
type runner struct {
	root, folder string
	// plain builds the tests that mutants in .sql files share.
	plain *builder

	mu sync.Mutex
	// without is how tests end without a mutant.
	without map[string]*plainly
}

func newRunner(root, folder string) (*runner, error) {
	plain, err := newBuilder(root, filepath.Join(folder, "plain"), nil)
	return &runner{root: root, folder: folder, plain: plain, without: make(map[string]*plainly)}, err
}

// outcome is what became of a mutant.
type outcome struct {
	kind string
	// by is the test that killed it, or the error with which it was not built.
	by   string
	took time.Duration
}

const (
	killed   = "killed"
	survived = "SURVIVED"
	// passed are mutants of which only the first steps were run: -steps.
	passed = "survived the first tests"
	// unbuilt are mutants that are no Go program. One that is no SQL is killed by the first test.
	unbuilt = "not built"
)

// try runs the tests of a mutant, step by step, until one fails.
func (r *runner) try(ctx context.Context, n int, m *mutant) (outcome, error) {
	began := time.Now()
	folder := filepath.Join(r.folder, fmt.Sprint(n))
	builds, err := r.builder(folder, m)
	if err == nil {
		err = m.prepare(folder)
	}
	for i, s := range m.tests() {
		if err != nil || m.only > 0 && i == m.only {
			break
		}
		var got result
		if got, err = r.step(ctx, builds, s, m, folder); got.failed {
			return outcome{killed, s.pkg + " " + got.by, time.Since(began)}, nil
		}
	}
	var broken *buildError
	if errors.As(err, &broken) && builds != r.plain {
		return outcome{unbuilt, broken.Error(), time.Since(began)}, nil
	}
	if err == nil && builds == r.plain {
		err = met(folder)
	}
	if m.only > 0 {
		return outcome{passed, "", time.Since(began)}, err
	}
	return outcome{survived, "", time.Since(began)}, err
}

func (r *runner) builder(folder string, m *mutant) (*builder, error) {
	if strings.HasSuffix(m.file, ".sql") {
		return r.plain, nil
	}
	return newBuilder(r.root, folder, m)
}

func (r *runner) dir(s step) string { return filepath.Join(r.root, filepath.FromSlash(s.pkg)) }
