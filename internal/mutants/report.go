package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// tally counts outcomes as they come.
type tally struct {
	mu  sync.Mutex
	why []explained
	// record is where outcomes are written for the next run.
	record *record
	count  map[string]int
	open   []string
	took   map[string]time.Duration
	err    error
}

// tryAll tries mutants, some at a time, and returns an error if one survives unexplained.
func tryAll(ctx context.Context, root string, mutants []mutant, t *tally, jobs int) error {
	folder, err := os.MkdirTemp("", "rowlock-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	r, err := newRunner(root, folder)
	if err != nil {
		return err
	}
	next, done := make(chan int), sync.WaitGroup{}
	for range max(1, jobs) {
		done.Go(func() {
			for n := range next {
				o, err := r.try(ctx, n, &mutants[n])
				t.note(n+1, len(mutants), &mutants[n], o, err)
			}
		})
	}
	for n := range mutants {
		if ctx.Err() != nil {
			break
		}
		next <- n
	}
	close(next)
	done.Wait()
	return errors.Join(t.result(), ctx.Err())
}

// note prints what became of a mutant.
func (t *tally) note(n, of int, m *mutant, o outcome, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.err = errors.Join(t.err, fmt.Errorf("%s: %w", m.name(), err))
		fmt.Printf("%d/%d error %s: %v\n", n, of, m.name(), err)
		return
	}
	t.err = errors.Join(t.err, t.record.note(m, o))
	said, why := o.by, explains(t.why, m)
	switch {
	case (o.kind == survived || o.kind == passed) && why != "":
		o.kind, said = "explained", why
	case o.kind == killed && why != "":
		said += " (explained.txt says that it may survive)"
	case o.kind != killed:
		t.open = append(t.open, m.name())
	}
	t.count[o.kind]++
	t.took[o.kind] += o.took
	fmt.Printf("%d/%d %s %.1fs %s | %s\n", n, of, o.kind, o.took.Seconds(), m.name(), said)
}

func (t *tally) result() error {
	for _, kind := range []string{killed, "explained", passed, survived, unbuilt} {
		fmt.Printf("%s: %d in %s\n", kind, t.count[kind], t.took[kind].Round(time.Second))
	}
	if len(t.open) == 0 {
		return t.err
	}
	return errors.Join(t.err, fmt.Errorf("%d guards that no test needs: write the test, or a line in "+
		"explained.txt:\n%s", len(t.open), strings.Join(t.open, "\n")))
}
