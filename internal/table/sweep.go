package table

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/lane"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	pageRows    = 1000   // rows looked at by one statement of the walk
	gatherLimit = 50_000 // dead keys remembered before their buckets are reaped
)

// Sweep walks the table in key order, gathers dead keys by the bucket of their floor, and removes a bucket's worth in one
// short transaction. It looks at every row once and locks only dead ones.
func (s *Store) Sweep(ctx context.Context, o lease.SweepOptions) (removed int64, err error) {
	if o.Retention < 0 { // dead in the future: rows would go that are held
		return 0, fmt.Errorf("%w: sweep: Retention (%s) is negative; 0 removes what is dead now", lease.ErrConfig, o.Retention)
	}
	if o.Batch <= 0 {
		o.Batch = 200
	}
	w := walk{store: s, opts: o, dead: make(map[int][]string)}
	err = s.sweepTickets(ctx, o)
	for more := true; more && err == nil; {
		if more, err = w.page(ctx); err == nil {
			err = w.reap(ctx, !more)
		}
	}
	return w.removed, err
}

// walk is one sweep under way.
type walk struct {
	store    *Store
	opts     lease.SweepOptions
	after    []byte
	dead     map[int][]string // by bucket
	gathered int
	removed  int64
}

// page looks at the next rows and gathers the dead among them. It reports whether there may be more.
func (w *walk) page(ctx context.Context) (more bool, err error) {
	type line struct {
		key  []byte
		dead bool
	}
	var lines []line
	args := []any{w.after, pageRows, sqlstore.Micros(w.opts.Retention), pageRows}
	if w.after == nil {
		args[0] = []byte{}
	}
	err = w.store.OnLane(ctx, "sweep", "", func(ctx context.Context, s *sqlstore.Session) error {
		lines = nil
		return s.Query(ctx, w.store.d.Text("dead"), args, func(row sqlstore.Columns) error {
			var l line
			err := row.Scan(&l.key, &l.dead)
			lines = append(lines, l)
			return err
		})
	})
	if err != nil {
		return false, err
	}
	for _, l := range lines {
		if l.dead {
			b := lease.Bucket(string(l.key))
			w.dead[b] = append(w.dead[b], string(l.key))
			w.gathered++
		}
	}
	if len(lines) == 0 {
		return false, nil
	}
	// A page that is not full lacks its marker row, so that its last line may be any dead row: the walk then looks at the
	// few rows behind that once more and ends.
	w.after = lines[len(lines)-1].key
	return true, nil
}

// reap removes the buckets that are worth a transaction, or all of them at the end.
func (w *walk) reap(ctx context.Context, all bool) error {
	all = all || w.gathered >= gatherLimit
	for _, bucket := range slices.Sorted(maps.Keys(w.dead)) {
		for keys := w.dead[bucket]; len(keys) >= w.opts.Batch || all && len(keys) > 0; keys = w.dead[bucket] {
			n := min(len(keys), w.opts.Batch)
			removed, err := w.store.reap(ctx, bucket, keys[:n], w.opts.Retention)
			if err != nil {
				return err
			}
			w.removed += removed
			w.gathered -= n
			w.dead[bucket] = keys[n:]
			if err := pause(ctx, w.opts.Pause); err != nil {
				return err
			}
		}
	}
	return nil
}

// reap removes what of keys is still dead, in one transaction: first the floor is locked, which keeps everybody from creating
// a row that counts from it, then the rows; the floor is raised above the highest token, and only then are they deleted.
func (s *Store) reap(ctx context.Context, bucket int, keys []string, retention time.Duration) (removed int64, err error) {
	var done int64 // the lane's: a call that has left it returns while the lane still counts
	err = s.OnLane(ctx, "reap", "", func(ctx context.Context, session *sqlstore.Session) (err error) {
		if s.d.Reap != nil {
			done, err = s.d.Reap(ctx, session, bucket, keys, retention)
			return err
		}
		return session.InTx(ctx, func() (err error) {
			done, err = s.reapLocked(ctx, session, bucket, keys, retention)
			return err
		})
	})
	if err != nil {
		return 0, err
	}
	return done, nil
}

func (s *Store) reapLocked(ctx context.Context, session *sqlstore.Session, bucket int, keys []string, retention time.Duration) (int64, error) {
	floor, err := s.lockFloor(ctx, session, bucket)
	if err != nil {
		return 0, err
	}
	var dead []string
	highest := floor
	err = session.Query(ctx, s.d.Text("dead-lock"), []any{s.d.List(keys), sqlstore.Micros(retention)}, func(row sqlstore.Columns) error {
		var key []byte
		var token int64
		err := row.Scan(&key, &token)
		dead, highest = append(dead, string(key)), max(highest, token)
		return err
	})
	if err != nil || len(dead) == 0 {
		return 0, err
	}
	if highest > floor {
		if err := s.raiseFloor(ctx, session, bucket, highest); err != nil {
			return 0, err
		}
	}
	_, err = session.Exec(ctx, s.d.Text("reap"), s.d.List(dead))
	return int64(len(dead)), err
}

func (s *Store) lockFloor(ctx context.Context, session *sqlstore.Session, bucket int) (floor int64, err error) {
	err = session.QueryRow(ctx, s.d.Text("floor-lock"), []any{bucket}, &floor)
	if errors.Is(err, sql.ErrNoRows) {
		err = vanished(fmt.Sprintf("the floor of bucket %d cannot be locked", bucket))
	}
	return floor, err
}

// raiseFloor reads the floor back: deleting a row above a floor that did not rise would let its token be granted again.
func (s *Store) raiseFloor(ctx context.Context, session *sqlstore.Session, bucket int, to int64) error {
	if _, err := session.Exec(ctx, s.d.Text("floor-raise"), to, bucket); err != nil {
		return err
	}
	floor, err := s.lockFloor(ctx, session, bucket)
	if err == nil && floor < to {
		err = vanished(fmt.Sprintf("the floor of bucket %d did not rise to %d", bucket, to))
	}
	return err
}

// OnLane runs f on a lane, behind everything else that is pending, also for a store that is built on this one. What certainly was not
// applied, or may have been, is run again, so f must be idempotent; errors are the store's, with the verb and the key.
func (s *Store) OnLane(ctx context.Context, verb, key string, f func(context.Context, *sqlstore.Session) error) error {
	_, _, err := s.do(ctx, lane.Acquire, verb, key, task{other: f})
	return err
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
