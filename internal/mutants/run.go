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

	mu       sync.Mutex
	baseline map[string]*baseline
}

// baseline is how tests end without a mutant.
type baseline struct {
	once sync.Once
	took time.Duration
	err  error
}

func newRunner(root, folder string) (*runner, error) {
	plain, err := newBuilder(root, filepath.Join(folder, "plain"), nil)
	return &runner{root: root, folder: folder, plain: plain, baseline: make(map[string]*baseline)}, err
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
	return outcome{survived, "", time.Since(began)}, err
}

func (r *runner) builder(folder string, m *mutant) (*builder, error) {
	if strings.HasSuffix(m.file, ".sql") {
		return r.plain, nil
	}
	return newBuilder(r.root, folder, m)
}

func (r *runner) step(ctx context.Context, b *builder, s step, m *mutant, folder string) (result, error) {
	usual, err := r.usual(ctx, s, m.db)
	if err != nil {
		return result{}, err
	}
	program, err := b.tests(ctx, s.pkg)
	if err != nil {
		return result{}, err
	}
	return attempt(ctx, program, r.dir(s), s, m.db, folder, usual)
}

func (r *runner) dir(s step) string { return filepath.Join(r.root, filepath.FromSlash(s.pkg)) }

// usual returns for how long the tests of a step may run: far longer than they do without a mutant,
// because the machine may be busier by then. Tests that fail without a mutant would kill all.
func (r *runner) usual(ctx context.Context, s step, db string) (time.Duration, error) {
	r.mu.Lock()
	key := strings.Join([]string{db, s.pkg, s.run, s.skip}, " ")
	b := r.baseline[key]
	if b == nil {
		b = &baseline{}
		r.baseline[key] = b
	}
	r.mu.Unlock()
	b.once.Do(func() { b.took, b.err = r.measure(ctx, s, db) })
	return max(3*time.Minute, 5*b.took), b.err
}

func (r *runner) measure(ctx context.Context, s step, db string) (time.Duration, error) {
	program, err := r.plain.tests(ctx, s.pkg)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	got, err := attempt(ctx, program, r.dir(s), s, db, "", time.Hour)
	if err == nil && got.failed {
		err = fmt.Errorf("%s -run %s fails without a mutant on %s: %s", s.pkg, s.run, db, got.by)
	}
	return time.Since(began), err
}
