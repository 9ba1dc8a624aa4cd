package table

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// Register registers a process as a waiter for each key, or extends the registration, in one
// statement. The rows have no rank in the queue.
func (s *Store) Register(
	ctx context.Context, process lease.Owner, identity string, keys []string, d time.Duration,
) error {
	if process.IsZero() {
		return fmt.Errorf("%w: register: the zero owner names no process; use lease.NewOwner",
			lease.ErrConfig)
	}
	if err := adapter.CheckIdentity(identity); err != nil {
		return err
	}
	s.process.meet(process)
	how := ""
	if s.Wakes() {
		s.hints.awaits(process, keys, time.Now().Add(d+late))
		if _, ok := s.hints.reached.Load(process); ok {
			how = "listens"
		}
	}
	note := s.d.AsStored(lease.StoredNote(identity, how))
	return s.note(ctx, "register", keys, conn.Bytes(process), note, conn.Micros(d), s.ordered(keys))
}

// Unregister removes those registrations in one statement.
func (s *Store) Unregister(ctx context.Context, process lease.Owner, keys []string) error {
	s.hints.awaitsNot(process, keys)
	return s.note(ctx, "unregister", keys, s.ordered(keys), conn.Bytes(process))
}

// note runs a section for keys.
func (s *Store) note(ctx context.Context, section string, keys []string, args ...any) error {
	if len(keys) == 0 {
		return nil
	}
	return s.OnPinned(ctx, section, keys[0],
		func(ctx context.Context, session *conn.Session) error {
			_, err := session.Exec(ctx, s.d.Text(section), args...)
			return err
		})
}

// ordered is a parameter with each key once, in order, so that two overlapping batches do not
// deadlock.
func (s *Store) ordered(keys []string) any {
	return s.d.List(slices.Compact(slices.Sorted(slices.Values(keys))))
}

// Awaited reports for which keys another process waits, in one statement that locks and writes
// nothing.
func (s *Store) Awaited(ctx context.Context, process lease.Owner, keys []string) ([]bool, error) {
	return perKey[bool](ctx, s, "awaited", keys, conn.Bytes(process), s.d.List(keys))
}

// Waiting counts the waiters of each key, in one statement that locks and writes nothing.
func (s *Store) Waiting(ctx context.Context, keys []string) ([]int, error) {
	return perKey[int](ctx, s, "waiting", keys, s.d.List(keys))
}

// perKey runs a section that returns one value for each key, in the keys' order.
func perKey[A any](ctx context.Context, s *Store, section string, keys []string, args ...any) (
	[]A, error,
) {
	if len(keys) == 0 {
		return nil, nil
	}
	var out []A
	read := s.newOp(conn.Acquire, task{run: func(ctx context.Context, session *conn.Session, _ *op) error {
		each := make([]A, 0, len(keys))
		err := session.Query(ctx, s.d.Text(section), args, func(row conn.Columns) error {
			var a A
			err := row.Scan(&a)
			each = append(each, a)
			return err
		})
		out = each
		return err
	}})
	read.Alone = true
	if _, _, err := s.conclude(ctx, section, keys[0], read); err != nil {
		return nil, err // out may still be written to
	}
	if len(out) != len(keys) {
		return nil, fmt.Errorf("%w: %s: %d answers for %d keys", lease.ErrCorrupt, section,
			len(out), len(keys))
	}
	return out, nil
}

// Meet notes a process before it waits for anything. A process that never waits registers nothing,
// and its releases would leave out the only one that does.
func (s *Store) Meet(process lease.Owner) {
	s.process.told.Store(true)
	s.process.meet(process)
}
