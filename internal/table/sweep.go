package table

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	pageRows    = 1000   // rows read by one statement of the walk
	gatherLimit = 50_000 // dead keys remembered before their buckets are reaped
)

// Sweep walks the table in key order, gathers dead keys by the bucket of their floor, and removes
// each bucket's batch in one short transaction. It reads every row once and locks only dead ones.
func (s *Store) Sweep(ctx context.Context, o lease.SweepOptions) (removed int64, err error) {
	if err := o.Check(); err != nil {
		return 0, err
	}
	if o.Batch <= 0 {
		o.Batch = 200
	}
	w := walk{store: s, opts: o, dead: make(map[int][]string), left: make(map[int]bool)}
	err = s.sweepTickets(ctx, o)
	for more := true; more && err == nil; {
		if more, err = w.page(ctx); err == nil {
			err = w.reap(ctx, !more)
		}
	}
	if err == nil {
		err = s.sweepWaits(ctx, o.Retention)
	}
	if err == nil {
		err = s.sweepMembers(ctx, o)
	}
	return w.removed, oneline.Join(err, w.bad)
}

// walk is one sweep.
type walk struct {
	store    *Store
	opts     lease.SweepOptions
	after    []byte
	dead     map[int][]string // by bucket
	gathered int
	removed  int64
	left     map[int]bool // the buckets that were left out
	bad      error        // of the first of them
	busy     bool         // one of them has a floor that is locked
}

// page reads the next rows and gathers the dead ones. It reports whether there may be more.
func (w *walk) page(ctx context.Context) (more bool, err error) {
	type line struct {
		key  []byte
		dead bool
	}
	var lines []line
	args := []any{w.after, pageRows, conn.Micros(w.opts.Retention), pageRows}
	if w.after == nil {
		args[0] = []byte{}
	}
	err = w.store.OnPinned(ctx, "sweep", "", func(ctx context.Context, s *conn.Session) error {
		lines = nil
		return s.Query(ctx, w.store.d.Text("dead"), args, func(row conn.Columns) error {
			var l line
			err := row.Scan(&l.key, &l.dead)
			if len(l.key) > 0 { // a walk goes on from a key
				lines = append(lines, l)
			}
			return conn.UnlessBad(err) // what cannot be read is not dead
		})
	})
	if err != nil {
		return false, err
	}
	for _, l := range lines {
		if b := lease.Bucket(string(l.key)); l.dead && !w.left[b] {
			w.dead[b] = append(w.dead[b], string(l.key))
			w.gathered++
		}
	}
	if len(lines) == 0 {
		return false, nil
	}
	// A page that is not full lacks its marker row, so that its last line may be any dead row.
	// The walk then reads the few rows behind that once more and ends.
	w.after = lines[len(lines)-1].key
	return true, nil
}

// reap removes the buckets that are worth a transaction, or all of them at the end.
func (w *walk) reap(ctx context.Context, all bool) error {
	all = all || w.gathered >= gatherLimit
	for _, bucket := range slices.Sorted(maps.Keys(w.dead)) {
		for keys := w.dead[bucket]; len(keys) >= w.opts.Batch || all &&
			len(keys) > 0; keys = w.dead[bucket] {
			n := min(len(keys), w.opts.Batch)
			removed, err := w.store.reap(ctx, bucket, keys[:n], w.opts.Retention)
			// Its floor cannot be read, or a transaction has it locked: no other bucket's is concerned.
			// The second that is locked ends the sweep, or it would wait for each in turn.
			busy := errors.Is(err, lease.ErrBusy)
			if conn.IsBad(err) || busy && !w.busy {
				w.bad, w.busy, w.left[bucket] = cmp.Or[error](w.bad, err), w.busy || busy, true
				w.gathered -= len(keys)
				delete(w.dead, bucket)
				break
			}
			if err != nil {
				return err
			}
			w.removed += removed
			w.gathered -= n
			w.dead[bucket] = keys[n:]
			if !retry.Sleep(ctx, w.opts.Pause) {
				return ctx.Err()
			}
		}
	}
	return nil
}

// reap removes those of keys that are still dead, in one transaction. It first locks the floor, so
// that no client creates a row that counts from it, and then the rows. It raises the floor above
// the highest token, and only then deletes the rows.
func (s *Store) reap(ctx context.Context, bucket int, keys []string, retention time.Duration) (
	removed int64, err error,
) {
	// The pinned connection's: it may still count after a call has left it.
	var done int64
	err = s.OnPinned(ctx, "reap", "",
		func(ctx context.Context, session *conn.Session) (err error) {
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

func (s *Store) reapLocked(
	ctx context.Context, session *conn.Session, bucket int, keys []string,
	retention time.Duration,
) (int64, error) {
	floor, err := s.lockFloor(ctx, session, bucket)
	if err != nil {
		return 0, err
	}
	var dead []string
	highest := floor
	err = session.Query(ctx, s.d.Text("dead-lock"),
		[]any{s.d.List(keys), conn.Micros(retention)}, func(row conn.Columns) error {
			var key []byte
			var token lease.Token
			err := row.Scan(&key, &token)
			if err == nil {
				dead, highest = append(dead, string(key)), max(highest, token)
			}
			return conn.UnlessBad(err)
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

func (s *Store) lockFloor(ctx context.Context, session *conn.Session, bucket int) (
	floor lease.Token, err error,
) {
	err = session.QueryRow(ctx, s.d.Text("floor-lock"), []any{bucket}, &floor)
	if errors.Is(err, sql.ErrNoRows) {
		err = vanished(fmt.Sprintf("the floor of bucket %d cannot be locked", bucket))
	}
	return floor, err
}

// raiseFloor reads the floor back: to delete a row above a floor that did not rise would let its
// token be granted again.
func (s *Store) raiseFloor(
	ctx context.Context, session *conn.Session, bucket int, to lease.Token,
) error {
	if _, err := session.Exec(ctx, s.d.Text("floor-raise"), to, bucket); err != nil {
		return err
	}
	floor, err := s.lockFloor(ctx, session, bucket)
	if err == nil && floor < to {
		err = vanished(fmt.Sprintf("the floor of bucket %d did not rise to %d", bucket, to))
	}
	return err
}
