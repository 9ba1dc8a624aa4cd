package table

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/internal/lane"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Await writes a row without rank for each key, or extends it: one statement.
func (s *Store) Await(ctx context.Context, process lease.Owner, keys []string, d time.Duration) error {
	if process.IsZero() {
		return fmt.Errorf("%w: await: the zero owner is nobody; use lease.NewOwner", lease.ErrConfig)
	}
	s.process.meet(process)
	section := "await"
	if s.Wakes() && s.hints.reaches(process) {
		section = "await-hearing"
	}
	return s.note(ctx, section, keys, awaiting(process, d))
}

func awaiting(process lease.Owner, d time.Duration) func(list any) []any {
	return func(list any) []any { return []any{sqlstore.Bytes(process), sqlstore.Micros(d), list} }
}

// Desist removes those rows: one statement.
func (s *Store) Desist(ctx context.Context, process lease.Owner, keys []string) error {
	return s.note(ctx, "desist", keys, func(list any) []any { return []any{list, sqlstore.Bytes(process)} })
}

// note runs a section for keys in order, so that two overlapping batches do not deadlock.
func (s *Store) note(ctx context.Context, section string, keys []string, args func(list any) []any) error {
	if len(keys) == 0 {
		return nil
	}
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	with := args(s.d.List(keys))
	_, _, err := s.do(ctx, lane.Acquire, section, keys[0], task{other: func(ctx context.Context, session *sqlstore.Session) error {
		_, err := session.Exec(ctx, s.d.Text(section), with...)
		return err
	}})
	return err
}

// Awaited looks who waits: one statement, which locks and writes nothing.
func (s *Store) Awaited(ctx context.Context, process lease.Owner, keys []string) ([]bool, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	args := []any{sqlstore.Bytes(process), s.d.List(keys)}
	var out []bool
	_, _, err := s.do(ctx, lane.Acquire, "awaited", keys[0], task{other: func(ctx context.Context, session *sqlstore.Session) error {
		out = make([]bool, 0, len(keys))
		return session.Query(ctx, s.d.Text("awaited"), args, func(row sqlstore.Columns) error {
			var awaited bool
			err := row.Scan(&awaited)
			out = append(out, awaited)
			return err
		})
	}})
	if err != nil {
		return nil, err // out may still be written to
	}
	if len(out) != len(keys) {
		return nil, fmt.Errorf("%w: awaited: %d answers for %d keys", lease.ErrCorrupt, len(out), len(keys))
	}
	return out, nil
}

// Waiting counts: one statement, which locks and writes nothing.
func (s *Store) Waiting(ctx context.Context, keys []string) ([]int, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	var out []int
	_, _, err := s.do(ctx, lane.Acquire, "waiting", keys[0], task{other: func(ctx context.Context, session *sqlstore.Session) error {
		out = make([]int, 0, len(keys))
		return session.Query(ctx, s.d.Text("waiting"), []any{s.d.List(keys)}, func(row sqlstore.Columns) error {
			var n int
			err := row.Scan(&n)
			out = append(out, n)
			return err
		})
	}})
	if err != nil {
		return nil, err // out may still be written to
	}
	if len(out) != len(keys) {
		return nil, fmt.Errorf("%w: waiting: %d answers for %d keys", lease.ErrCorrupt, len(out), len(keys))
	}
	return out, nil
}

// rehearseInterest has a process begin to wait and stop.
func (s *Store) rehearseInterest(ctx context.Context, key string) error {
	process, keys := lease.NewOwner(), []string{key}
	if err := s.note(ctx, "await", keys, awaiting(process, rehearsalTTL)); err != nil {
		return err
	}
	seen, err := s.Awaited(ctx, lease.Owner{}, keys)
	if err == nil && !seen[0] {
		err = vanished("a process that waits was not noted")
	}
	return oneline.Join(err, s.Desist(ctx, process, keys))
}

// processes remembers for whom the store works, to leave that process's own interest out of what a release reports. A store that
// serves several cannot tell whose release it is, and leaves out nobody's.
type processes struct{ seen atomic.Pointer[lease.Owner] }

func (p *processes) meet(process lease.Owner) {
	if p.seen.Load() == nil && p.seen.CompareAndSwap(nil, &process) {
		return
	}
	if *p.seen.Load() != process {
		p.seen.Store(&lease.Owner{})
	}
}

// alone is the one process that was met, or nobody.
func (p *processes) alone() lease.Owner {
	if seen := p.seen.Load(); seen != nil {
		return *seen
	}
	return lease.Owner{}
}
