package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
)

// limit is for how long the tests of one step may run. It is far longer than they do, because many
// steps run at a time.
const limit = 5 * time.Minute

// rounds is how often a step runs at most that fails and whose test then passes alone.
const rounds = 3

// plainly is how a test ends without a mutant.
type plainly struct {
	once sync.Once
	err  error
}

// step runs the tests of one step. A test that fails is run alone, with the mutant and without it,
// because on a busy machine a test fails that has noticed nothing.
func (r *runner) step(ctx context.Context, b *builder, s step, m *mutant, folder string) (result, error) {
	program, err := b.tests(ctx, s.pkg)
	if err != nil {
		return result{}, err
	}
	for round := 1; ; round++ {
		got, err := attempt(ctx, program, r.dir(s), s, m.db, folder, limit)
		if err != nil || !got.failed || strings.HasPrefix(got.by, timedOut) {
			return got, err
		}
		alone := s.alone(got.by)
		if err := r.passes(ctx, alone, m.db); err != nil {
			return result{}, err
		}
		again, err := attempt(ctx, program, r.dir(s), alone, m.db, folder, limit)
		if err != nil || again.failed {
			return again, err
		}
		if round == rounds {
			got.by += " (not always)"
			return got, nil
		}
	}
}

// timedOut begins what tests say that wait for ever.
const timedOut = "panic: test timed out"

// alone is the step with one test only, or the whole step if no test is named.
func (s step) alone(test string) step {
	if !strings.HasPrefix(test, "Test") {
		return s
	}
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	s.run, s.skip = strings.Join(parts, "/"), ""
	return s
}

// passes returns an error if tests fail without a mutant, because they would kill all.
func (r *runner) passes(ctx context.Context, s step, db string) error {
	r.mu.Lock()
	key := strings.Join([]string{db, s.pkg, s.run, s.skip}, " ")
	p := r.without[key]
	if p == nil {
		p = &plainly{}
		r.without[key] = p
	}
	r.mu.Unlock()
	p.once.Do(func() { p.err = r.plainly(ctx, s, db) })
	return p.err
}

func (r *runner) plainly(ctx context.Context, s step, db string) error {
	program, err := r.plain.tests(ctx, s.pkg)
	if err != nil {
		return err
	}
	for round := 1; ; round++ {
		got, err := attempt(ctx, program, r.dir(s), s, db, "", limit)
		if err != nil || !got.failed {
			return err
		}
		if round == rounds {
			return fmt.Errorf("%s -run %s fails without a mutant on %s: %s", s.pkg, s.run, db, got.by)
		}
	}
}
